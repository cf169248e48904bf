//===- FoldTransposes.cpp - Let tensor cores transpose codes --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "MatmulClocks.h"
#include "SkipTranspose.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FOLDTRANSPOSESPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// What kernels that transpose 8 bits take, of the time of one with K
/// innermost: means of an H200 (benchmarks/results/transposing.txt). Expected
/// costs do not have it, by which promoted ones were chosen that take longer
/// than a copy.
static constexpr double kTransposingFast = 1.05, kTransposingPromoted = 1.19;

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
  /// Whether `op`, which reads `source`, may do without a copy that takes
  /// `copyClocks`, and itself `clocks` with it.
  bool takesSource(Operation *op, double copyClocks,
                   std::optional<double> clocks, const KernelTarget &target);
};
} // namespace

bool FoldTransposesPass::takesSource(Operation *op, double copyClocks,
                                     std::optional<double> clocks,
                                     const KernelTarget &target) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  if (failed(spec))
    return false;
  FailureOr<SelectedKernel> kernel = selectKernel(*spec, target, unused);
  if (failed(kernel))
    return false;
  if (codes == "kernel" || !transposesCodes(*spec, *kernel))
    return true;
  if (codes == "copy" || !clocks)
    return false;
  bool isPromoted = spec->accumulate == Accumulate::Promote;
  double own = std::max(
      kernel->getCost(*spec, target),
      *clocks * (isPromoted ? kTransposingPromoted : kTransposingFast));
  double all = *clocks + copyClocks;
  op->emitRemark() << "an operand in the other order is "
                   << (own < all ? "transposed in registers" : "copied")
                   << ": registers are expected to take "
                   << llvm::formatv("{0:f2}", own / all).str()
                   << " of the time with a copy";
  return own < all;
}

template <typename OpTy>
static OpOperand &getOperand(OpTy op, bool isA) {
  return isA ? op.getAMutable() : op.getBMutable();
}

/// What it takes to make the transposed copy that `ops` read; nothing if that
/// is made for others anyway.
template <typename OpTy>
static double getCopyClocks(ArrayRef<OpTy> ops, bool isA,
                            const KernelTarget &target) {
  Value copy = getOperand(ops.front(), isA).get();
  // Also by the other operand of the same product.
  bool isShared = llvm::any_of(copy.getUses(), [&](OpOperand &use) {
    return llvm::none_of(ops,
                         [&](OpTy op) { return &getOperand(op, isA) == &use; });
  });
  Value source = getTransposed(copy);
  auto type = dyn_cast<ScaledType>(copy.getType());
  if (!source || !type || isShared)
    return 0;
  return getTransposeClocks(type.getPayloadType(),
                            !source.getDefiningOp<QuantizeOp>(), target) /
         double(ops.size());
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
  double copyClocks = getCopyClocks(ops, isA, target);
  SmallVector<std::optional<double>> clocks;
  for (OpTy op : ops)
    clocks.push_back(getExpectedClocks(op, target));
  toggle(source);
  if (!llvm::all_of(llvm::zip_equal(ops, clocks), [&](auto entry) {
        auto [op, ownClocks] = entry;
        return takesSource(op, copyClocks, ownClocks, target);
      }))
    return toggle(copy);
  numFolded += ops.size();
  if (copy.use_empty())
    copy.getDefiningOp()->erase();
}

/// Which operands may be folded, in this order: of one that only is, the copy
/// that takes longer, which is the larger one or is not made with the codes.
static std::array<bool, 2> getOrder(Operation *op, const KernelTarget &target) {
  auto matmul = dyn_cast<MatmulOp>(op);
  bool isAFirst =
      !matmul || getCopyClocks<MatmulOp>(matmul, /*isA=*/true, target) >=
                     getCopyClocks<MatmulOp>(matmul, /*isA=*/false, target);
  return {isAFirst, !isAFirst};
}

void FoldTransposesPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (!llvm::is_contained({"copy", "kernel", "cost"}, codes)) {
    module.emitError() << "expected codes to be copy, kernel or cost, but got '"
                       << codes << "'";
    return signalPassFailure();
  }
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  module.walk([&](Operation *op) {
    for (bool isA : getOrder(op, *target)) {
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
