//===- TargetPipelines.h - Phases 5 to 7, of each target --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_PIPELINES_TARGETPIPELINES_H
#define FP8_LIB_PIPELINES_TARGETPIPELINES_H

#include "fp8/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::fp8 {

void buildCPUBufferPipeline(OpPassManager &pm);
/// `inWarps`: sums are in the order of a GPU's loops.
void buildCPUKernelPipeline(OpPassManager &pm, bool inWarps = false);
void buildCPUHostPipeline(OpPassManager &pm);

void buildGPUBufferPipeline(OpPassManager &pm, const PipelineOptions &options);
/// What decides on kernels in phase 5, and what follows their choice.
void buildGPUSelectionPipeline(OpPassManager &pm,
                               const PipelineOptions &options);
void buildGPULaunchPipeline(OpPassManager &pm);
void buildGPUKernelPipeline(OpPassManager &pm);
void buildGPUHostPipeline(OpPassManager &pm, const PipelineOptions &options);

/// Every phase ends in the check of what it promises.
void addVerifyStagePass(OpPassManager &pm, Phase phase);

inline void addFuncPass(OpPassManager &pm, std::unique_ptr<Pass> pass) {
  pm.addNestedPass<func::FuncOp>(std::move(pass));
}

/// Passes under the names that they had before, with a warning.
void registerFormerPasses();

/// The meaning of the dialect in linalg. For a GPU what is in one tensor at the
/// place of another is gathered in one loop.
void addLinalgPasses(OpPassManager &pm, bool isForGPU = false);
/// Tensors become memory.
void addBufferPasses(OpPassManager &pm);
/// Arithmetic on scalars as all targets have it: the same bits on each.
void addScalarPasses(OpPassManager &pm);
/// What describes memrefs becomes arithmetic.
void addMetadataPasses(OpPassManager &pm);
/// What upstream takes to the llvm dialect.
void addLLVMPasses(OpPassManager &pm);

} // namespace mlir::fp8

#endif // FP8_LIB_PIPELINES_TARGETPIPELINES_H
