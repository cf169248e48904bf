//===- Candidates.cpp - Every kernel for an operation ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Candidates.h"

#include "fp8/GPU/IR/LaunchJSON.h"
#include "fp8/Kernels/KernelModule.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Pipelines/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::fp8;

/// Puts the kernels of all configs into `kernels`, whose names the candidates
/// get.
static LogicalResult buildKernels(const TunedKernel &tuned,
                                  MutableArrayRef<Candidate> candidates,
                                  gpu::GPUModuleOp kernels) {
  OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
  for (auto [i, candidate] : llvm::enumerate(candidates)) {
    // The label of a config need not tell it from all others.
    candidate.name = getKernelName(*tuned.spec, *tuned.generator,
                                   candidate.config, tuned.target);
    if (kernels.lookupSymbol(candidate.name))
      candidate.name += "_" + std::to_string(i);
    std::string reason;
    FailureOr<LLVM::LLVMFuncOp> kernel = tuned.generator->build(
        builder, tuned.op->getLoc(), *tuned.spec, candidate.config,
        tuned.target, candidate.name, reason);
    if (failed(kernel))
      return tuned.op->emitOpError() << reason;
    candidate.launch =
        getLaunchJSON((*kernel)->getAttrOfType<LaunchAttr>(kLaunchAttrName));
  }
  return success();
}

FailureOr<Candidates> fp8::buildCandidates(const TunedKernel &tuned,
                                           const TunerOptions &options) {
  MLIRContext *context = tuned.op->getContext();
  PassManager pm(context);
  SerializeKernelsPassOptions serialize;
  serialize.cache = options.kernelCache;
  pm.addPass(createSerializeKernelsPass(serialize));
  // Generators make operations of the dialects that this pass depends on.
  DialectRegistry registry;
  createBuildKernelsPass()->getDependentDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();

  OwningOpRef<ModuleOp> module = ModuleOp::create(tuned.op->getLoc());
  (*module)->setAttr(kTargetAttrName, tuned.target);
  Candidates candidates;
  for (KernelConfigAttrInterface config : tuned.generator->getCandidates(
           *tuned.spec, tuned.target, options.exhaustive)) {
    if (candidates.list.size() == options.most)
      break;
    candidates.list.push_back({config, {}, {}});
  }
  if (failed(buildKernels(tuned, candidates.list, getKernelModule(*module))) ||
      failed(pm.run(*module)))
    return failure();
  auto binary = *module->getOps<gpu::BinaryOp>().begin();
  candidates.code =
      cast<gpu::ObjectAttr>(binary.getObjects()[0]).getObject().str();
  return candidates;
}
