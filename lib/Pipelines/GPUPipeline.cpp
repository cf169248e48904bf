//===- GPUPipeline.cpp - Phases 5 to 7 for an NVIDIA GPU ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetPipelines.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/GPU/Transforms/Passes.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Pipelines/Passes.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fp8;

void fp8::buildGPUSelectionPipeline(OpPassManager &pm,
                                    const PipelineOptions &options) {
  SetTargetPassOptions setTarget;
  setTarget.chip = options.target;
  setTarget.machine = options.machine;
  pm.addPass(createSetTargetPass(setTarget));
  // Copies are late only with regard to what could be.
  addFuncPass(pm, createSinkProducersPass());
  ShareTransposesPassOptions share;
  share.memoryPrice = options.memoryPrice;
  share.keepsPeak = options.keepPeak;
  pm.addPass(createShareTransposesPass(share));
  pm.addPass(createSplitFusionsPass());
  pm.addPass(createFuseScalesPass());
  // What will be launched stands now, in whatever order.
  addFuncPass(pm, createSinkProducersPass());
  SelectKernelsPassOptions select;
  select.table = options.kernelTable;
  pm.addPass(createSelectKernelsPass(select));
}

/// 5: matmuls get kernels, all else its meaning in linalg; then memrefs.
void fp8::buildGPUBufferPipeline(OpPassManager &pm,
                                 const PipelineOptions &options) {
  buildGPUSelectionPipeline(pm, options);
  // While operands can be traced, and it is known what has a kernel.
  pm.addPass(createReportCopiesPass());
  if (!options.fusionReport.empty()) {
    ReportFusionPassOptions report;
    report.file = options.fusionReport;
    pm.addPass(createReportFusionPass(report));
  }
  buildGPULaunchPipeline(pm);
}

void fp8::buildGPULaunchPipeline(OpPassManager &pm) {
  pm.addPass(createGroupMatmulsPass());
  pm.addPass(createDispatchByRowsPass());
  pm.addPass(createChooseScaleLayoutPass());
  pm.addPass(createBuildKernelsPass());
  pm.addPass(createLaunchKernelsPass());
  pm.addPass(createRecordInPlacePass());
  addLinalgPasses(pm, /*isForGPU=*/true);
  addBufferPasses(pm);
  addFuncPass(pm, createMergeFillsPass());
  pm.addPass(createBatchLaunchesPass());
}

/// 6: what has no kernel yet becomes one.
void fp8::buildGPUKernelPipeline(OpPassManager &pm) {
  pm.addPass(createLowerLinalgToGPUPass());
  pm.addPass(createInlineKernelCallsPass());
  // Before outlining, so that kernels and the host get the same arithmetic.
  addScalarPasses(pm);
  // Constants are better known to a kernel than passed to it.
  addFuncPass(pm, createSinkConstantsPass());
  pm.addPass(createGpuLaunchSinkIndexComputationsPass());
  pm.addPass(createGpuKernelOutliningPass());
}

/// 7: the host calls the runtime; kernels are bytes in its module.
void fp8::buildGPUHostPipeline(OpPassManager &pm,
                               const PipelineOptions &options) {
  pm.addPass(createAddContextPass());
  // While arguments have their names.
  pm.addPass(createCheckArgumentsPass());
  pm.addPass(createStripAttributesPass());
  // Names that kept equal kernels apart are gone.
  pm.addPass(createMergeKernelsPass());
  // Each compiles by itself, beside the others, and is found in the cache
  // whatever program it is in.
  pm.addPass(createSplitKernelsPass());
  SerializeKernelsPassOptions serialize;
  serialize.format = options.kernelFormat;
  serialize.cache = options.kernelCache;
  pm.addPass(createSerializeKernelsPass(serialize));
  addMetadataPasses(pm);
  // Once all that a launch is given is a memref or a number.
  pm.addPass(createShareLaunchesPass());
  pm.addPass(createConvertGPUToRuntimePass());
  addLLVMPasses(pm);
}
