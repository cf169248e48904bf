//===- SerializeKernels.cpp - Kernels to bytes ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/Passes.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Pipelines/Passes.h"
#include "fp8/Target/NVPTX/PTX.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SERIALIZEKERNELSPASS
#include "fp8/Pipelines/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Kernels of loops to the LLVM dialect.
static void buildLoopKernelsPipeline(OpPassManager &pm) {
  pm.addPass(createLowerLoopMathPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(arith::createArithExpandOpsPass());
  // Integers; what is left of floats are intrinsics.
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertGpuOpsToNVVMOps());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

namespace {
struct SerializeKernels
    : fp8::impl::SerializeKernelsPassBase<SerializeKernels> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override;
  void runOnOperation() override;
  LogicalResult lower(gpu::GPUModuleOp kernels);
  /// The module's code, assembled if there is a path to ptxas.
  FailureOr<std::string> getCode(gpu::GPUModuleOp kernels, StringRef ptxas);
  void replace(gpu::GPUModuleOp kernels, StringRef code,
               gpu::CompilationTarget kind);
};
} // namespace

void SerializeKernels::getDependentDialects(DialectRegistry &registry) const {
  Base::getDependentDialects(registry);
  for (auto *build : {buildLowerKernelsPipeline, buildLoopKernelsPipeline}) {
    OpPassManager pm(gpu::GPUModuleOp::getOperationName());
    build(pm);
    pm.getDependentDialects(registry);
  }
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

LogicalResult SerializeKernels::lower(gpu::GPUModuleOp kernels) {
  OpPassManager pm(gpu::GPUModuleOp::getOperationName());
  // The one computes on the scales of a tensor and must be exact, the other on
  // the results of a product.
  if (kernels.getName() == kLoopKernelsName)
    buildLoopKernelsPipeline(pm);
  else
    buildLowerKernelsPipeline(pm);
  return runPipeline(pm, kernels);
}

FailureOr<std::string> SerializeKernels::getCode(gpu::GPUModuleOp kernels,
                                                 StringRef ptxas) {
  PTXOptions options;
  options.chip = chip;
  options.ptxas = ptxas.str();
  FailureOr<std::string> ptx = emitPTX(kernels, options);
  if (failed(ptx) || ptxas.empty())
    return ptx;
  std::string log;
  FailureOr<SmallVector<char>> cubin = assemblePTX(
      *ptx, options, log, [&] { return emitError(kernels.getLoc()); });
  if (failed(cubin))
    return failure();
  return std::string(cubin->begin(), cubin->end());
}

void SerializeKernels::replace(gpu::GPUModuleOp kernels, StringRef code,
                               gpu::CompilationTarget kind) {
  SmallVector<gpu::KernelMetadataAttr> table;
  for (auto function : kernels.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      continue;
    auto launch = function->getAttrOfType<DictionaryAttr>(kLaunchAttrName);
    table.push_back(gpu::KernelMetadataAttr::get(
        function.getNameAttr(), function.getFunctionType(),
        /*argAttrs=*/ArrayAttr(), launch));
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

void SerializeKernels::runOnOperation() {
  if (format != "auto" && format != "ptx" && format != "cubin") {
    emitError(getOperation().getLoc(),
              "expected kernel-format to be auto, cubin or ptx, but got '")
        << format << "'";
    return signalPassFailure();
  }
  SmallVector<gpu::GPUModuleOp> modules(
      getOperation().getOps<gpu::GPUModuleOp>());
  std::string ptxas;
  if (format != "ptx" && !modules.empty())
    ptxas = findPtxas();
  if (ptxas.empty() && !modules.empty()) {
    if (format == "cubin") {
      emitError(getOperation().getLoc(), kNoPtxas);
      return signalPassFailure();
    }
    if (format == "auto")
      emitRemark(getOperation().getLoc(),
                 "no ptxas was found: kernels are embedded as PTX, which the "
                 "driver compiles whenever it loads them");
  }
  for (gpu::GPUModuleOp kernels : modules)
    if (failed(lower(kernels)))
      return signalPassFailure();
  // Most of the time is spent in ptxas, a process for each module.
  SmallVector<FailureOr<std::string>> codes(modules.size());
  parallelFor(&getContext(), 0, modules.size(),
              [&](size_t i) { codes[i] = getCode(modules[i], ptxas); });
  auto kind = ptxas.empty() ? gpu::CompilationTarget::Assembly
                            : gpu::CompilationTarget::Binary;
  for (auto [kernels, code] : llvm::zip_equal(modules, codes)) {
    if (failed(code))
      return signalPassFailure();
    replace(kernels, *code, kind);
  }
}
