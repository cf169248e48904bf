//===- ConvertOutlinedKernels.cpp - gpu.func to the LLVM dialect ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's convert-gpu-to-nvvm would do, but it converts all of a gpu.module,
// and refuses the LLVM dialect's own functions, which generators use.
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/Transforms/Passes.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTOUTLINEDKERNELSPASS
#include "fp8/GPU/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

/// What is left of a converted kernel's arithmetic on addresses.
static OpPassManager makeCleanUp() {
  OpPassManager pm(LLVM::LLVMFuncOp::getOperationName());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  return pm;
}

namespace {
struct ConvertOutlinedKernelsPass
    : fp8::impl::ConvertOutlinedKernelsPassBase<ConvertOutlinedKernelsPass> {
  using Base::Base;
  void runOnOperation() override;
  /// Kept from one module to the next, with the canonicalizer's patterns.
  OpPassManager cleanUp = makeCleanUp();
};
} // namespace

void ConvertOutlinedKernelsPass::runOnOperation() {
  SmallVector<Operation *> kernels;
  SmallVector<StringAttr> names;
  for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
    kernels.push_back(kernel);
    names.push_back(kernel.getNameAttr());
  }
  if (kernels.empty())
    return markAllAnalysesPreserved();

  LLVMTypeConverter converter(&getContext());
  configureGpuToNVVMTypeConverter(converter);
  RewritePatternSet patterns(&getContext());
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateComplexToLLVMConversionPatterns(converter, patterns);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(getContext());
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addIllegalDialect<arith::ArithDialect, cf::ControlFlowDialect,
                           complex::ComplexDialect, gpu::GPUDialect,
                           index::IndexDialect, memref::MemRefDialect,
                           ub::UBDialect, vector::VectorDialect>();
  if (failed(applyPartialConversion(kernels, target, std::move(patterns))))
    return signalPassFailure();

  for (StringAttr name : names)
    if (failed(runPipeline(cleanUp, getOperation().lookupSymbol(name))))
      return signalPassFailure();
}
