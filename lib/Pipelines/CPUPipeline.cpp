//===- CPUPipeline.cpp - Phases 5 to 7 for a CPU --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetPipelines.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/Formats.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fp8;

/// 5: passes over memory by tiles, the dialect's meaning in linalg, then
/// memrefs.
void fp8::buildCPUBufferPipeline(OpPassManager &pm) {
  addFuncPass(pm, createFormFusionsPass());
  pm.addPass(createTileFusionsPass());
  addLinalgPasses(pm);
  // Once it is known what writes to memory of its own.
  pm.addPass(createOutlineEqualComputationsPass());
  addBufferPasses(pm);
}

void fp8::addLinalgPasses(OpPassManager &pm, bool isForGPU) {
  addFuncPass(pm, createWidenContractionsPass());
  pm.addPass(createConvertFP8ToLinalgPass());
  addFuncPass(pm, createCheckExtentsPass());
  DecomposeAggregatesPassOptions decompose;
  decompose.gatherWindows = isForGPU;
  addFuncPass(pm, createDecomposeAggregatesPass(decompose));
  addFuncPass(pm, createFuseElementwisePass());
  addFuncPass(pm, createCanonicalizerPass());
  addFuncPass(pm, createCSEPass());
  pm.addPass(createConvertTensorToLinalgPass());
  // Memory that is allocated anew costs little, and what nobody needs for a
  // while serves others meanwhile.
  addFuncPass(pm, createDuplicateEmptyTensorsPass());
  addFuncPass(pm, createSeparateReadsPass());
  pm.addPass(createMarkReadOnlyArgumentsPass());
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
}

void fp8::addBufferPasses(OpPassManager &pm) {
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  bufferize.allowReturnAllocsFromLoops = true;
  bufferize.bufferAlignment = 64;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  // Functions that write to what they are given return nothing.
  pm.addPass(bufferization::createDropEquivalentBufferResultsPass());
  addFuncPass(pm, createCanonicalizerPass());
  // After the last use, in place of the end of the block.
  addFuncPass(pm, createFreeBuffersPass());
  // As bufferization::buildBufferDeallocationPipeline has them, but that
  // kernels are left to whoever lowers them, several at a time.
  addFuncPass(pm, memref::createExpandReallocPass());
  addFuncPass(pm, createCanonicalizerPass());
  addFuncPass(pm, bufferization::createOwnershipBasedBufferDeallocationPass());
  addFuncPass(pm, createCanonicalizerPass());
  addFuncPass(pm, bufferization::createBufferDeallocationSimplificationPass());
  pm.addPass(bufferization::createLowerDeallocationsPass());
  addFuncPass(pm, createCSEPass());
  addFuncPass(pm, createCanonicalizerPass());
  pm.addPass(createConvertBufferizationToMemRefPass());
}

/// 6: contractions call the runtime, everything else becomes loops.
void fp8::buildCPUKernelPipeline(OpPassManager &pm, bool inWarps) {
  ConvertGemmsToRuntimePassOptions gemms;
  gemms.inWarps = inWarps;
  pm.addPass(createConvertGemmsToRuntimePass(gemms));
  addFuncPass(pm, createLowerLinalgToLoopsPass());
  pm.addPass(createConvertForallToRuntimePass());
  addScalarPasses(pm);
}

void fp8::addScalarPasses(OpPassManager &pm) {
  // Complex numbers as pairs of real ones.
  addFuncPass(pm, createConvertComplexToStandardPass());
  // bf16 arithmetic in f32, one rounding after every operation: what LLVM's
  // own legalization promises, without the flush of denormals that some x86
  // bf16 instructions add.
  addFuncPass(pm, math::createMathExtendToSupportedTypes());
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {fp8rt::kBF16.mlirName};
  for (const fp8rt::NumberFormat *format : fp8rt::kFormats)
    if (format->isCode)
      emulate.sourceTypeStrs.push_back(format->mlirName);
  emulate.targetTypeStr = "f32";
  addFuncPass(pm, arith::createArithEmulateUnsupportedFloats(emulate));
  addFuncPass(pm, createExpandFloatCastsPass());
  addFuncPass(pm, createCanonicalizerPass());
  addFuncPass(pm, createCSEPass());
}

/// 7: the llvm dialect.
void fp8::buildCPUHostPipeline(OpPassManager &pm) {
  pm.addPass(createStripAttributesPass());
  addMetadataPasses(pm);
  addLLVMPasses(pm);
}

void fp8::addMetadataPasses(OpPassManager &pm) {
  // LLVM's loads and stores are of vectors of one dimension.
  addFuncPass(pm, createConvertVectorToSCFPass(
                      VectorTransferToSCFOptions().enableFullUnroll()));
  addFuncPass(pm, createLowerDynamicExpandShapePass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
}

void fp8::addLLVMPasses(OpPassManager &pm) {
  pm.addPass(createSCFToControlFlowPass());
  addFuncPass(pm, createLowerExtremaPass());
  addFuncPass(pm, arith::createArithExpandOpsPass());
  addFuncPass(pm, createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertComplexToLLVMPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  // One call in place of malloc's and the arithmetic that aligns what it gives,
  // which would be most of a long program.
  FinalizeMemRefToLLVMConversionPassOptions memory;
  memory.useAlignedAlloc = true;
  pm.addPass(createFinalizeMemRefToLLVMConversionPass(memory));
  pm.addPass(createConvertFunctionsPass());
  pm.addPass(createCheckStackPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
}

void fp8::buildCPUPipeline(OpPassManager &pm) {
  buildCPUBufferPipeline(pm);
  addVerifyStagePass(pm, Phase::Buffers);
  buildCPUKernelPipeline(pm);
  addVerifyStagePass(pm, Phase::Kernels);
  buildCPUHostPipeline(pm);
  addVerifyStagePass(pm, Phase::Host);
}
