//===- BuildKernels.cpp - Generate a GPU kernel for each matmul with a config
//===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/MatmulKernel.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OperationSupport.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_BUILDKERNELSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static constexpr StringLiteral kModuleName = "fp8_kernels";

namespace {
struct BuildKernelsPass : fp8::impl::BuildKernelsPassBase<BuildKernelsPass> {
  using Base::Base;

  void runOnOperation() override;
  LogicalResult build(MatmulOp op, gpu::GPUModuleOp kernels);
  /// The kernel that `function` repeats, or null.
  LLVM::LLVMFuncOp findEqual(LLVM::LLVMFuncOp function,
                             gpu::GPUModuleOp kernels);
};
} // namespace

static gpu::GPUModuleOp getKernelModule(ModuleOp module) {
  if (auto kernels = module.lookupSymbol<gpu::GPUModuleOp>(kModuleName))
    return kernels;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  return gpu::GPUModuleOp::create(builder, module.getLoc(), kModuleName);
}

LLVM::LLVMFuncOp BuildKernelsPass::findEqual(LLVM::LLVMFuncOp function,
                                             gpu::GPUModuleOp kernels) {
  for (auto other : kernels.getOps<LLVM::LLVMFuncOp>())
    if (other != function &&
        other->getAttr(kLaunchAttrName) == function->getAttr(kLaunchAttrName) &&
        OperationEquivalence::isRegionEquivalentTo(
            &other.getBody(), &function.getBody(),
            OperationEquivalence::IgnoreLocations))
      return other;
  return {};
}

LogicalResult BuildKernelsPass::build(MatmulOp op, gpu::GPUModuleOp kernels) {
  auto config = op->getAttrOfType<GemmConfigAttr>(kGemmConfigAttrName);
  std::string reason;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, reason);
  if (failed(spec))
    return op.emitOpError() << reason;
  // What the name does not tell, an epilogue for one, gets a number.
  std::string base = getMatmulKernelName(*spec, config), name = base;
  for (unsigned i = 1; kernels.lookupSymbol(name); ++i)
    name = base + "_" + std::to_string(i);
  OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
  FailureOr<LLVM::LLVMFuncOp> kernel =
      buildMatmulSM90(builder, op.getLoc(), *spec, config, name, reason);
  if (failed(kernel))
    return op.emitOpError() << reason;
  if (LLVM::LLVMFuncOp equal = findEqual(*kernel, kernels)) {
    kernel->erase();
    kernel = equal;
  } else {
    ++numKernels;
  }
  op->setAttr(kKernelAttrName, SymbolRefAttr::get(kernels.getNameAttr(),
                                                  FlatSymbolRefAttr::get(
                                                      kernel->getNameAttr())));
  return success();
}

void BuildKernelsPass::runOnOperation() {
  SmallVector<MatmulOp> matmuls;
  getOperation().walk([&](MatmulOp op) {
    if (op->hasAttr(kGemmConfigAttrName))
      matmuls.push_back(op);
  });
  if (matmuls.empty())
    return markAllAnalysesPreserved();
  gpu::GPUModuleOp kernels = getKernelModule(getOperation());
  for (MatmulOp op : matmuls)
    if (failed(build(op, kernels)))
      return signalPassFailure();
}
