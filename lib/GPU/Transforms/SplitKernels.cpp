//===- SplitKernels.cpp - A gpu.module for each kernel --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSymbols.h"
#include "fp8/GPU/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SPLITKERNELSPASS
#include "fp8/GPU/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct SplitKernelsPass : fp8::impl::SplitKernelsPassBase<SplitKernelsPass> {
  using Base::Base;
  void runOnOperation() override;
  /// Leaves the first kernel of `kernels` where it is, and notes in `moved`
  /// where references to the others lead from now on.
  LogicalResult split(gpu::GPUModuleOp kernels, SymbolTable &symbols,
                      DenseMap<SymbolRefAttr, SymbolRefAttr> &moved);
};
} // namespace

/// Adds what `op` refers to in `kernels`, and what that refers to.
static LogicalResult collectUses(Operation *op, gpu::GPUModuleOp kernels,
                                 llvm::SetVector<Operation *> &used) {
  auto uses = SymbolTable::getSymbolUses(op);
  if (!uses)
    return op->emitError("expected to find what the kernel refers to, but it "
                         "has operations of an unknown dialect");
  for (const SymbolTable::SymbolUse &use : *uses)
    if (Operation *symbol =
            kernels.lookupSymbol(use.getSymbolRef().getRootReference());
        symbol && used.insert(symbol))
      if (failed(collectUses(symbol, kernels, used)))
        return failure();
  return success();
}

LogicalResult
SplitKernelsPass::split(gpu::GPUModuleOp kernels, SymbolTable &symbols,
                        DenseMap<SymbolRefAttr, SymbolRefAttr> &moved) {
  SmallVector<FunctionOpInterface> all = getKernels(kernels);
  if (all.size() < 2)
    return success();
  OpBuilder builder(kernels->getContext());
  builder.setInsertionPointAfter(kernels);
  for (FunctionOpInterface kernel : ArrayRef(all).drop_front()) {
    llvm::SetVector<Operation *> used;
    if (failed(collectUses(kernel, kernels, used)))
      return failure();
    // Whatever attributes the module has are about each of its kernels.
    auto own = cast<gpu::GPUModuleOp>(kernels->cloneWithoutRegions());
    own.getBodyRegion().emplaceBlock();
    symbols.insert(own, builder.getInsertionPoint());
    OpBuilder body = OpBuilder::atBlockEnd(own.getBody());
    for (Operation *symbol : used)
      body.clone(*symbol);
    SymbolRefAttr old = getKernelReference(kernel);
    kernel->moveBefore(own.getBody(), own.getBody()->end());
    moved[old] = getKernelReference(kernel);
    ++numSplit;
  }
  return success();
}

void SplitKernelsPass::runOnOperation() {
  SymbolTable symbols(getOperation());
  DenseMap<SymbolRefAttr, SymbolRefAttr> moved;
  for (auto kernels :
       llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
    if (failed(split(kernels, symbols, moved)))
      return signalPassFailure();
  if (moved.empty())
    return markAllAnalysesPreserved();
  replaceKernelReferences(getOperation(), moved);
}
