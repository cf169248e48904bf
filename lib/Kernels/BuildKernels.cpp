//===- BuildKernels.cpp - Generate the kernels that were chosen -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks/ExpandCodes.h"
#include "TargetLookup.h"
#include "fp8/Kernels/KernelModule.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-build-kernels"

namespace mlir::fp8 {
#define GEN_PASS_DEF_BUILDKERNELSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct BuildKernelsPass : fp8::impl::BuildKernelsPassBase<BuildKernelsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  void runOnOperation() override;
  LogicalResult build(KernelOpInterface op, const KernelTarget &target,
                      gpu::GPUModuleOp kernels);
  /// The symbol of a kernel of `config`.
  FailureOr<SymbolRefAttr> build(KernelOpInterface op, const KernelSpec &spec,
                                 KernelConfigAttrInterface config,
                                 const KernelTarget &target,
                                 gpu::GPUModuleOp kernels);
  /// The kernel that `function` repeats, or null.
  LLVM::LLVMFuncOp findEqual(LLVM::LLVMFuncOp function,
                             gpu::GPUModuleOp kernels);
};
} // namespace

gpu::GPUModuleOp fp8::getKernelModule(ModuleOp module) {
  if (auto kernels = module.lookupSymbol<gpu::GPUModuleOp>(kKernelModuleName))
    return kernels;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  return gpu::GPUModuleOp::create(builder, module.getLoc(), kKernelModuleName);
}

std::string fp8::getKernelName(const KernelSpec &spec,
                               const KernelGenerator &generator,
                               KernelConfigAttrInterface config,
                               GPUTargetAttr target) {
  std::string chip = target.getChip().str();
  llvm::erase(chip, '_');
  return llvm::join_items('_', "fp8", spec.getKind(), chip,
                          generator.getLabel(spec), config.getLabel());
}

LLVM::LLVMFuncOp BuildKernelsPass::findEqual(LLVM::LLVMFuncOp function,
                                             gpu::GPUModuleOp kernels) {
  for (auto other : kernels.getOps<LLVM::LLVMFuncOp>())
    if (other != function &&
        other->getAttr(kLaunchAttrName) == function->getAttr(kLaunchAttrName) &&
        other->getAttr(kMathAttrName) == function->getAttr(kMathAttrName) &&
        OperationEquivalence::isRegionEquivalentTo(
            &other.getBody(), &function.getBody(),
            OperationEquivalence::IgnoreLocations))
      return other;
  return {};
}

FailureOr<SymbolRefAttr>
BuildKernelsPass::build(KernelOpInterface op, const KernelSpec &spec,
                        KernelConfigAttrInterface config,
                        const KernelTarget &target, gpu::GPUModuleOp kernels) {
  std::string reason;
  const KernelGenerator *generator =
      target.architecture->getGenerator(spec, reason);
  if (!generator)
    return op->emitOpError() << reason;
  // What the name does not tell, an epilogue for one, gets a number.
  std::string base = getKernelName(spec, *generator, config, target.attribute);
  std::string name = base;
  for (unsigned i = 1; kernels.lookupSymbol(name); ++i)
    name = base + "_" + std::to_string(i);
  OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
  FailureOr<LLVM::LLVMFuncOp> kernel = generator->build(
      builder, op.getLoc(), spec, config, target.attribute, name, reason);
  if (failed(kernel))
    return op->emitOpError() << reason;
  if (!hasCodes(target.attribute.getComputeCapability()))
    expandConversions(*kernel);
  (*kernel)->setAttr(kConfigAttrName, config);
  if (LLVM::LLVMFuncOp equal = findEqual(*kernel, kernels)) {
    LDBG() << name << " is " << equal.getName();
    kernel->erase();
    kernel = equal;
  } else {
    ++numKernels;
  }
  return SymbolRefAttr::get(kernels.getNameAttr(),
                            FlatSymbolRefAttr::get(kernel->getNameAttr()));
}

LogicalResult BuildKernelsPass::build(KernelOpInterface op,
                                      const KernelTarget &target,
                                      gpu::GPUModuleOp kernels) {
  std::string reason;
  FailureOr<std::unique_ptr<KernelSpec>> spec = op.getKernelSpec(reason);
  if (failed(spec))
    return op->emitOpError() << reason;
  FailureOr<SymbolRefAttr> kernel = build(
      op, **spec, op->getAttrOfType<KernelConfigAttrInterface>(kConfigAttrName),
      target, kernels);
  if (failed(kernel))
    return failure();
  op->setAttr(kKernelAttrName, *kernel);
  auto fewRows = op->getAttrOfType<ArrayAttr>(kFewRowsAttrName);
  if (!fewRows)
    return success();
  // A config may come back for more rows.
  llvm::SmallDenseMap<Attribute, SymbolRefAttr> kernelOf;
  kernelOf[op->getAttr(kConfigAttrName)] = *kernel;
  SmallVector<Attribute> built;
  for (auto choice : fewRows.getAsRange<FewRowsAttr>()) {
    SymbolRefAttr &own = kernelOf[choice.getConfig()];
    if (!own) {
      kernel =
          build(op, **spec, cast<KernelConfigAttrInterface>(choice.getConfig()),
                target, kernels);
      if (failed(kernel))
        return failure();
      own = *kernel;
    }
    built.push_back(FewRowsAttr::get(&getContext(), choice.getMost(),
                                     choice.getConfig(), own));
  }
  op->setAttr(kFewRowsAttrName, ArrayAttr::get(&getContext(), built));
  return success();
}

void BuildKernelsPass::runOnOperation() {
  SmallVector<KernelOpInterface> ops;
  getOperation().walk([&](KernelOpInterface op) {
    if (op->hasAttr(kConfigAttrName))
      ops.push_back(op);
  });
  if (ops.empty())
    return markAllAnalysesPreserved();
  FailureOr<KernelTarget> target = lookupTarget(getOperation());
  if (failed(target))
    return signalPassFailure();
  gpu::GPUModuleOp kernels = getKernelModule(getOperation());
  for (KernelOpInterface op : ops)
    if (failed(build(op, *target, kernels)))
      return signalPassFailure();
}
