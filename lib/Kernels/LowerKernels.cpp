//===- LowerKernels.cpp - Kernels to the LLVM dialect ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void fp8::buildLowerKernelsPipeline(OpPassManager &pm) {
  pm.addPass(createLowerKernelMathPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void fp8::registerKernelPipelines() {
  PassPipelineRegistration<>(
      "fp8-lower-kernels",
      "Take the kernels of gpu.modules to the LLVM dialect",
      [](OpPassManager &pm) {
        buildLowerKernelsPipeline(pm.nest<gpu::GPUModuleOp>());
      });
}
