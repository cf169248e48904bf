//===- LowerKernels.cpp - Kernels to the LLVM dialect ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/Transforms/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

/// What generators built; control flow and arithmetic are what is left of other
/// dialects.
static void buildGeneratedPipeline(OpPassManager &pm) {
  // Generators write without folding; formulas are found by their shape.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(fp8::createLowerApproximateMathPass());
  pm.addPass(fp8::createLowerExactMathPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

/// What was outlined; buffers are lowered with their functions.
static void buildOutlinedPipeline(OpPassManager &pm) {
  pm.addPass(fp8::createLowerExactMathPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(arith::createArithExpandOpsPass());
  // Integers; what is left of floats are intrinsics.
  pm.addPass(createConvertMathToLLVMPass());
}

void fp8::buildLowerKernelsPipeline(OpPassManager &pm) {
  buildGeneratedPipeline(pm.nest<LLVM::LLVMFuncOp>());
  buildOutlinedPipeline(pm.nest<gpu::GPUFuncOp>());
  pm.addPass(createConvertOutlinedKernelsPass());
}

void fp8::registerKernelPipelines() {
  PassPipelineRegistration<>(
      "fp8-lower-kernels",
      "Take the kernels of gpu.modules to the LLVM dialect",
      [](OpPassManager &pm) {
        buildLowerKernelsPipeline(pm.nest<gpu::GPUModuleOp>());
      });
}
