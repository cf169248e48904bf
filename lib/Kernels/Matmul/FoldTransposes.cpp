//===- FoldTransposes.cpp - Let tensor cores transpose codes --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "SkipTranspose.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FOLDTRANSPOSESPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct FoldTransposesPass
    : fp8::impl::FoldTransposesPassBase<FoldTransposesPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;

private:
  /// Folds the operand that products share, grouped ones or not, if kernels of
  /// all read it in either order.
  template <typename OpTy>
  void foldOperand(ArrayRef<OpTy> ops, bool isA, const KernelTarget &target);
};
} // namespace

template <typename OpTy>
static OpOperand &getOperand(OpTy op, bool isA) {
  return isA ? op.getAMutable() : op.getBMutable();
}

template <typename OpTy>
void FoldTransposesPass::foldOperand(ArrayRef<OpTy> ops, bool isA,
                                     const KernelTarget &target) {
  Value copy = getOperand(ops.front(), isA).get(), source = getTransposed(copy);
  if (!source || !llvm::all_of(ops, [](OpTy op) { return op.isScaled(); }))
    return;
  auto toggle = [&](Value value) {
    for (OpTy op : ops) {
      getOperand(op, isA).set(value);
      if (isA)
        op.setTransposeA(!op.getTransposeA());
      else
        op.setTransposeB(!op.getTransposeB());
    }
  };
  toggle(source);
  if (!llvm::all_of(ops, [&](OpTy op) { return hasKernel(op, target); }))
    return toggle(copy);
  numFolded += ops.size();
  if (copy.use_empty())
    copy.getDefiningOp()->erase();
}

void FoldTransposesPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  module.walk([&](Operation *op) {
    for (bool isA : {true, false}) {
      if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
        foldOperand<GroupedMatmulOp>(grouped, isA, *target);
      auto matmul = dyn_cast<MatmulOp>(op);
      if (matmul && !isa<SiblingMatmulsOp>(matmul->getParentOp()))
        foldOperand<MatmulOp>(matmul, isA, *target);
      auto group = dyn_cast<SiblingMatmulsOp>(op);
      if (!group)
        continue;
      auto matmuls = llvm::to_vector(group.getBody().getOps<MatmulOp>());
      Value first = getOperand(matmuls.front(), isA).get();
      // What makes it a group is the same operand of all.
      if (llvm::all_of(matmuls, [&](MatmulOp matmul) {
            return getOperand(matmul, isA).get() == first;
          })) {
        foldOperand<MatmulOp>(matmuls, isA, *target);
        continue;
      }
      for (MatmulOp matmul : matmuls)
        foldOperand<MatmulOp>(matmul, isA, *target);
    }
  });
}
