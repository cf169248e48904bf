//===- SerializeKernels.cpp - Kernels to bytes ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/Transforms/Passes.h"
#include "fp8/Pipelines/Passes.h"
#include "fp8/Target/NVPTX/PTX.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SERIALIZEKERNELSPASS
#include "fp8/Pipelines/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct SerializeKernelsPass
    : fp8::impl::SerializeKernelsPassBase<SerializeKernelsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override;
  void runOnOperation() override;
  LogicalResult lower(gpu::GPUModuleOp kernels);
  /// The module's code, assembled if `options` have a path of ptxas.
  FailureOr<std::string> getCode(gpu::GPUModuleOp kernels,
                                 const PTXOptions &options);
  void replace(gpu::GPUModuleOp kernels, StringRef code, StringRef chip,
               gpu::CompilationTarget kind);
};
} // namespace

void SerializeKernelsPass::getDependentDialects(
    DialectRegistry &registry) const {
  Base::getDependentDialects(registry);
  OpPassManager pm(gpu::GPUModuleOp::getOperationName());
  buildLowerKernelsPipeline(pm);
  pm.getDependentDialects(registry);
  // What convert-to-llvm finds through interfaces.
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

LogicalResult SerializeKernelsPass::lower(gpu::GPUModuleOp kernels) {
  OpPassManager pm(gpu::GPUModuleOp::getOperationName());
  buildLowerKernelsPipeline(pm);
  return runPipeline(pm, kernels);
}

FailureOr<std::string>
SerializeKernelsPass::getCode(gpu::GPUModuleOp kernels,
                              const PTXOptions &options) {
  FailureOr<std::string> ptx = emitPTX(kernels, options);
  if (failed(ptx) || options.ptxas.empty())
    return ptx;
  std::string log;
  FailureOr<SmallVector<char>> cubin = assemblePTX(
      *ptx, options, log, [&] { return emitError(kernels.getLoc()); });
  if (failed(cubin))
    return failure();
  return std::string(cubin->begin(), cubin->end());
}

void SerializeKernelsPass::replace(gpu::GPUModuleOp kernels, StringRef code,
                                   StringRef chip,
                                   gpu::CompilationTarget kind) {
  SmallVector<gpu::KernelMetadataAttr> table;
  for (auto function : kernels.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      continue;
    DictionaryAttr metadata;
    if (Attribute launch = function->getAttr(kLaunchAttrName))
      metadata = DictionaryAttr::get(
          &getContext(),
          NamedAttribute(StringAttr::get(&getContext(), kLaunchAttrName),
                         launch));
    table.push_back(gpu::KernelMetadataAttr::get(
        function.getNameAttr(), function.getFunctionType(),
        /*argAttrs=*/ArrayAttr(), metadata));
  }
  OpBuilder builder(kernels);
  auto object = gpu::ObjectAttr::get(
      NVVM::NVVMTargetAttr::get(&getContext(), /*optLevel=*/3,
                                "nvptx64-nvidia-cuda", chip),
      kind, builder.getStringAttr(code), /*properties=*/DictionaryAttr(),
      gpu::KernelTableAttr::get(&getContext(), table));
  gpu::BinaryOp::create(builder, kernels.getLoc(), kernels.getName(),
                        /*offloadingHandler=*/Attribute(),
                        ArrayRef<Attribute>{object});
  kernels.erase();
}

void SerializeKernelsPass::runOnOperation() {
  if (format != "auto" && format != "ptx" && format != "cubin") {
    emitError(getOperation().getLoc(),
              "expected kernel-format to be auto, cubin or ptx, but got '")
        << format << "'";
    return signalPassFailure();
  }
  SmallVector<gpu::GPUModuleOp> modules(
      getOperation().getOps<gpu::GPUModuleOp>());
  if (modules.empty())
    return;
  auto target = getOperation()->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  if (!target) {
    emitError(getOperation().getLoc(), "expected a module with the attribute '")
        << kTargetAttrName << "', which fp8-set-target gives it";
    return signalPassFailure();
  }
  PTXOptions options(target);
  if (format != "ptx")
    options.ptxas = findPtxas();
  if (options.ptxas.empty() && format == "cubin") {
    emitError(getOperation().getLoc(), kNoPtxas);
    return signalPassFailure();
  }
  if (options.ptxas.empty() && format == "auto")
    emitRemark(getOperation().getLoc(),
               "no ptxas was found: kernels are embedded as PTX, which the "
               "driver compiles whenever it loads them");
  auto kind = options.ptxas.empty() ? gpu::CompilationTarget::Assembly
                                    : gpu::CompilationTarget::Binary;
  for (gpu::GPUModuleOp kernels : modules) {
    if (failed(lower(kernels)))
      return signalPassFailure();
    FailureOr<std::string> code = getCode(kernels, options);
    if (failed(code))
      return signalPassFailure();
    replace(kernels, *code, target.getChip(), kind);
  }
}
