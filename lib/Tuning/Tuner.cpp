//===- Tuner.cpp - Measured choices of kernels ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Tuning/Tuner.h"

#include "Measure.h"

#include "fp8/Support/ReportedError.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fp8;

/// The operations for which a table can have an entry, each once. Remarks say
/// why others are left out.
static SmallVector<TunedKernel> collectKernels(ModuleOp module) {
  auto target = module->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  const Architecture *architecture = lookupArchitecture(target.getChip());
  SmallVector<TunedKernel> kernels;
  llvm::StringSet<> seen;
  module.walk([&](KernelOpInterface op) {
    std::string reason;
    FailureOr<std::unique_ptr<KernelSpec>> spec = op.getKernelSpec(reason);
    const KernelGenerator *generator =
        succeeded(spec) ? architecture->getGenerator(**spec, reason) : nullptr;
    if (!generator) {
      op->emitRemark() << "not tuned, for it has no kernel: " << reason;
      return;
    }
    if (!(*spec)->hasKnownExtents()) {
      op->emitRemark() << "not tuned, for not all of its extents are known";
      return;
    }
    if (seen.insert(TuningTable::describe(**spec)).second)
      kernels.push_back({op, std::move(*spec), generator, target});
  });
  return kernels;
}

static llvm::Expected<TunedChoice> tune(const TunedKernel &tuned,
                                        const TunerOptions &options, GPU &gpu) {
  FailureOr<Candidates> candidates = buildCandidates(tuned, options);
  if (failed(candidates))
    return makeReportedError();
  auto times = measure(tuned, *candidates, options.rounds, gpu);
  if (!times)
    return times.takeError();
  auto *best = llvm::min_element(*times);
  const Candidate &fastest = candidates->list[best - times->begin()];
  TunedChoice choice;
  choice.kernel = TuningTable::describe(*tuned.spec);
  choice.fastest = {fastest.config, *best};
  choice.configs = times->size();
  std::string reason;
  FailureOr<KernelConfigAttrInterface> selected =
      tuned.generator->select(*tuned.spec, tuned.target, reason);
  for (auto [candidate, time] : llvm::zip_equal(candidates->list, *times))
    if (succeeded(selected) && candidate.config == *selected)
      choice.selectedMicroseconds = time;
  return choice;
}

llvm::Error
fp8::tuneKernels(ModuleOp module, const TunerOptions &options,
                 TuningTable &table,
                 llvm::function_ref<void(const TunedChoice &)> report) {
  SmallVector<TunedKernel> kernels = collectKernels(module);
  if (kernels.empty())
    return llvm::createStringError(
        "expected a program with operations that have kernels, but it has "
        "none");
  if (options.onlyMissing)
    llvm::erase_if(kernels, [&](const TunedKernel &tuned) {
      return table.lookup(*tuned.spec) != nullptr;
    });
  if (kernels.empty())
    return llvm::Error::success();
  auto gpu = GPU::create(kernels.front().target.getComputeCapability());
  if (!gpu)
    return gpu.takeError();
  table.device = (*gpu)->getInfo().name;
  for (const TunedKernel &tuned : kernels) {
    auto choice = tune(tuned, options, **gpu);
    if (!choice)
      return choice.takeError();
    table.insert(*tuned.spec, choice->fastest);
    report(*choice);
  }
  return llvm::Error::success();
}
