//===- SerializeKernels.cpp - Kernels to bytes ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/Transforms/Passes.h"
#include "fp8/Pipelines/Passes.h"
#include "fp8/Target/NVPTX/Assembler.h"
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
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/ADT/ScopeExit.h"

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
  LogicalResult lower();
  /// The code of each module, assembled if `options` have a path of ptxas.
  FailureOr<SmallVector<std::string>>
  getCode(ArrayRef<gpu::GPUModuleOp> modules, const PTXOptions &options);
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

/// Modules at a time, as they are nested in this one.
LogicalResult SerializeKernelsPass::lower() {
  OpPassManager pm(ModuleOp::getOperationName());
  buildLowerKernelsPipeline(pm.nest<gpu::GPUModuleOp>());
  // One failure is enough to know: the first in program order.
  bool hasFailed = false;
  ScopedDiagnosticHandler first(&getContext(), [&](Diagnostic &diagnostic) {
    bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success(isError && std::exchange(hasFailed, true));
  });
  return runPipeline(pm, getOperation());
}

FailureOr<SmallVector<std::string>>
SerializeKernelsPass::getCode(ArrayRef<gpu::GPUModuleOp> modules,
                              const PTXOptions &options) {
  std::optional<Assembler> assembler;
  if (!options.ptxas.empty())
    assembler.emplace(options, cache);
  SmallVector<std::string> codes(modules.size());
  // Errors come in the order of the modules, whichever thread is first.
  ParallelDiagnosticHandler diagnostics(&getContext());
  auto compile = [&](size_t index) -> LogicalResult {
    diagnostics.setOrderIDForThread(index);
    llvm::scope_exit done([&] { diagnostics.eraseOrderIDForThread(); });
    gpu::GPUModuleOp kernels = modules[index];
    FailureOr<std::string> code = emitPTX(kernels, options);
    if (succeeded(code) && assembler)
      code = assembler->assemble(*code,
                                 [&] { return emitError(kernels.getLoc()); });
    if (failed(code))
      return failure();
    codes[index] = std::move(*code);
    return success();
  };
  if (failed(
          failableParallelForEachN(&getContext(), 0, modules.size(), compile)))
    return failure();
  if (!assembler)
    return codes;
  numAssembled += assembler->getNumAssembled();
  numCached += assembler->getNumCached();
  if (std::string reason = assembler->finish(); !reason.empty())
    emitRemark(getOperation().getLoc(), "kernels were not kept in the cache: ")
        << reason;
  if (!assembler->getRefusal().empty())
    emitWarning(getOperation().getLoc(), "the cache of kernels is not used: ")
        << assembler->getRefusal();
  return codes;
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
  bool asPTX = format == "ptx" || (format == "auto" && isForEmulator());
  if (!asPTX)
    options.ptxas = findPtxas();
  if (options.ptxas.empty() && format == "cubin") {
    emitError(getOperation().getLoc(), kNoPtxas);
    return signalPassFailure();
  }
  if (options.ptxas.empty() && !asPTX)
    emitRemark(getOperation().getLoc(),
               "no ptxas was found: kernels are embedded as PTX, which the "
               "driver compiles whenever it loads them");
  auto kind = options.ptxas.empty() ? gpu::CompilationTarget::Assembly
                                    : gpu::CompilationTarget::Binary;
  if (failed(lower()))
    return signalPassFailure();
  FailureOr<SmallVector<std::string>> codes = getCode(modules, options);
  if (failed(codes))
    return signalPassFailure();
  for (auto [kernels, code] : llvm::zip_equal(modules, *codes))
    replace(kernels, code, target.getChip(), kind);
}
