//===- FoldLifts.cpp - Let matmuls read packed weights --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FOLDLIFTSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct FoldLiftsPass : fp8::impl::FoldLiftsPassBase<FoldLiftsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;
};
} // namespace

/// The matmuls that read `lift` as their B; nothing if anything else reads it.
static SmallVector<Operation *> getReaders(LiftOp lift) {
  SmallVector<Operation *> readers;
  for (Operation *user : lift->getUsers()) {
    auto assemble = dyn_cast<AssembleOp>(user);
    if (!assemble)
      return {};
    for (OpOperand &use : assemble.getResult().getUses()) {
      Operation *reader = use.getOwner();
      auto isB = [&](auto op) {
        return op && op.getBMutable().get() == use.get() &&
               op.getA() != use.get();
      };
      if (!isB(dyn_cast<MatmulOp>(reader)) &&
          !isB(dyn_cast<GroupedMatmulOp>(reader)))
        return {};
      readers.push_back(reader);
    }
  }
  return readers;
}

void FoldLiftsPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  module.walk([&](LiftOp lift) {
    SmallVector<Operation *> readers = getReaders(lift);
    if (readers.empty())
      return;
    lift.setFolded(true);
    if (llvm::all_of(readers,
                     [&](Operation *op) { return hasKernel(op, *target); })) {
      ++numFolded;
      return;
    }
    lift.setFolded(false);
    lift.emitRemark() << "weights are lifted in memory: no kernel reads them "
                         "packed for each matmul of them";
  });
}
