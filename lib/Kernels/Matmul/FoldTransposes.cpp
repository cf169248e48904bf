//===- FoldTransposes.cpp - Let tensor cores transpose codes --------------===//
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
  /// Of a product, a grouped one or not, what a kernel reads in either order.
  template <typename OpTy>
  void foldOperands(OpTy op, const KernelTarget &target);
};
} // namespace

/// What is transposed, if only the last two dimensions change places.
static Value getTransposed(Value operand) {
  auto transpose = operand.getDefiningOp<TransposeOp>();
  if (!transpose)
    return {};
  SmallVector<int64_t> expected =
      llvm::to_vector(llvm::seq<int64_t>(0, transpose.getPermutation().size()));
  if (expected.size() < 2)
    return {};
  std::swap(expected.back(), expected[expected.size() - 2]);
  return llvm::equal(transpose.getPermutation(), expected)
             ? transpose.getSource()
             : Value();
}

template <typename OpTy>
void FoldTransposesPass::foldOperands(OpTy op, const KernelTarget &target) {
  if (!op.isScaled())
    return;
  for (bool isA : {true, false}) {
    OpOperand &operand = isA ? op.getAMutable() : op.getBMutable();
    Value copy = operand.get(), source = getTransposed(copy);
    if (!source)
      continue;
    auto toggle = [&](Value value) {
      operand.set(value);
      if (isA)
        op.setTransposeA(!op.getTransposeA());
      else
        op.setTransposeB(!op.getTransposeB());
    };
    toggle(source);
    if (!hasKernel(op, target)) {
      toggle(copy);
      continue;
    }
    ++numFolded;
    if (copy.use_empty())
      copy.getDefiningOp()->erase();
  }
}

void FoldTransposesPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  module.walk([&](Operation *op) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      foldOperands(matmul, *target);
    else if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
      foldOperands(grouped, *target);
  });
}
