//===- FuseElementwise.cpp - Chains of elementwise operations to one ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-fuse-elementwise"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FUSEELEMENTWISEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

static bool hasOnlyParallelLoops(linalg::LinalgOp op) {
  return op.getNumLoops() == op.getNumParallelLoops();
}

/// Whether `op` rounds a matmul's result to 16 bits and can do so in its
/// epilogue. Fused with a user that goes to the epilogue of another matmul, the
/// first would store, and the second read, 32 bits.
static bool roundsMatmul(linalg::LinalgOp op) {
  if (op->getNumResults() != 1 || op.getNumDpsInputs() != 1 ||
      !isa<BFloat16Type, Float16Type>(getElementTypeOrSelf(op->getResult(0))))
    return false;
  auto matmul = op.getDpsInputs().front().getDefiningOp<fp8::MatmulOp>();
  return matmul && matmul->hasOneUse() &&
         matmul->getBlock() == op->getBlock() &&
         matmul.getResult().getType().getElementType().isF32();
}

/// Whether a loop of both would do more for an element than is saved by keeping
/// it in a register. Each fusion copies what has been fused before, so that
/// without an end a chain would take time with the square of its length.
static bool isTooLarge(linalg::LinalgOp producer, linalg::LinalgOp consumer) {
  constexpr size_t maxOperations = 128;
  return producer.getBlock()->getOperations().size() +
             consumer.getBlock()->getOperations().size() >
         maxOperations;
}

namespace {
struct FuseElementwisePass
    : fp8::impl::FuseElementwisePassBase<FuseElementwisePass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void FuseElementwisePass::runOnOperation() {
  SmallVector<linalg::LinalgOp> named;
  getOperation()->walk([&](linalg::LinalgOp op) {
    if (hasOnlyParallelLoops(op) &&
        !isa<linalg::GenericOp, linalg::FillOp, linalg::TransposeOp>(
            op.getOperation()))
      named.push_back(op);
  });
  IRRewriter rewriter(&getContext());
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    // What upstream cannot generalise keeps its name and its own lowering.
    (void)linalg::generalizeNamedOp(rewriter, op);
  }

  RewritePatternSet patterns(&getContext());
  linalg::populateElementwiseOpsFusionPatterns(
      patterns, [](OpOperand *operand) {
        auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
        auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
        if (!producer || !consumer || !hasOnlyParallelLoops(producer) ||
            !hasOnlyParallelLoops(consumer))
          return false;
        // A producer outside of the consumer's loop is computed once there.
        bool isOutside = producer->getBlock() != consumer->getBlock();
        bool isLarge = isTooLarge(producer, consumer);
        bool isWorthIt = producer->hasOneUse() && !isOutside && !isLarge &&
                         !roundsMatmul(producer);
        LDBG() << (isWorthIt                ? "fused with "
                   : !producer->hasOneUse() ? "not fused, for others use it "
                                              "beside "
                   : isOutside ? "not fused, for it would be computed again by "
                   : isLarge   ? "not fused, for it would be too large with "
                               : "not fused, for it rounds a matmul before ")
               << consumer->getName() << ": "
               << OpWithFlags(producer, OpPrintingFlags().skipRegions());
        return isWorthIt;
      });
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
    signalPassFailure();
}
