//===- fp8-tune.cpp - Measure kernels and remember the fastest ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "FatalErrors.h"
#include "Measure.h"
#include "Options.h"

#include "fp8/Compiler/Monitor.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/TuningTable.h"
#include "fp8/Support/OutputFile.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace mlir::fp8;

static llvm::Expected<std::unique_ptr<SourceProgram>>
readProgram(const TuneOptions &options) {
  if (options.shapes.extents.empty())
    return SourceProgram::read(options);
  return SourceProgram::read(
      options, llvm::MemoryBuffer::getMemBufferCopy(getProgram(options.shapes),
                                                    "--shape"));
}

/// The table to add to.
static FailureOr<TuningTable> startTable(const TuneOptions &options,
                                         MLIRContext &context) {
  Location loc = UnknownLoc::get(&context);
  TuningTable table(options.pipeline.target);
  if (!options.pipeline.kernelTable.empty() &&
      failed(table.load(
          options.pipeline.kernelTable, &context,
          [&] { return emitError(loc); }, [&] { return emitRemark(loc); })))
    return failure();
  return table;
}

/// Measures the kernels of one operation, adds the fastest config and says how
/// far the one that is chosen without a table is from it. False if what is
/// wrong has been reported.
static llvm::Expected<bool> tune(const TunedKernel &tuned,
                                 const TuneOptions &options, GPU &gpu,
                                 TuningTable &table) {
  FailureOr<Candidates> candidates = buildCandidates(tuned, options);
  if (failed(candidates))
    return false;
  auto times = measure(tuned, *candidates, options.rounds, gpu);
  if (!times)
    return times.takeError();
  auto *best = llvm::min_element(*times);
  const Candidate &fastest = candidates->list[best - times->begin()];
  table.insert(*tuned.spec, {fastest.config, *best});

  std::string reason;
  FailureOr<KernelConfigAttrInterface> chosen =
      tuned.generator->select(*tuned.spec, tuned.target, reason);
  llvm::errs() << table.describe(*tuned.spec) << ": " << fastest.config
               << llvm::formatv(", {0:f2} us", *best);
  for (auto [candidate, time] : llvm::zip_equal(candidates->list, *times))
    if (succeeded(chosen) && candidate.config == *chosen)
      llvm::errs() << llvm::formatv(", {0:f2} us without a table", time);
  llvm::errs() << llvm::formatv(", {0} configs\n", times->size());
  return true;
}

static llvm::Expected<bool> tuneProgram(const TuneOptions &options) {
  auto source = readProgram(options);
  if (!source)
    return source.takeError();
  FailureOr<TuningTable> table = startTable(options, (*source)->getContext());
  if (failed(table))
    return false;
  PipelineOptions pipeline = options.pipeline;
  pipeline.to = stringifyPhase(Phase::Fusion).str();
  ModuleOp module = (*source)->getModule();
  PassManager pm(module.getContext());
  SetTargetPassOptions setTarget;
  setTarget.chip = options.pipeline.target;
  pm.addPass(createSetTargetPass(setTarget));
  {
    Monitor monitor("fp8-tune", options.timing);
    if (failed(runPipeline(module, pipeline, &monitor)) ||
        failed(pm.run(module)))
      return false;
  }
  SmallVector<TunedKernel> kernels = collectKernels(module);
  if (kernels.empty())
    return llvm::createStringError(
        "expected a program with operations that have kernels, but it has "
        "none");
  auto gpu = GPU::create(kernels.front().target.getComputeCapability());
  if (!gpu)
    return gpu.takeError();
  table->device = (*gpu)->getInfo().name;
  for (const TunedKernel &tuned : kernels) {
    auto done = tune(tuned, options, **gpu, *table);
    if (!done || !*done)
      return done;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  table->write(os);
  if (auto error = writeOutputFile(options.output, text))
    return error;
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  handleFatalErrors("fp8-tune");
  auto options = parseOptions(argc, argv);
  if (options && options->help)
    return 0;
  return finish("fp8-tune",
                options ? tuneProgram(*options) : options.takeError());
}
