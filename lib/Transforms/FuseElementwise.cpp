//===- FuseElementwise.cpp - Chains of elementwise operations to one ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FUSEELEMENTWISEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

static bool hasOnlyParallelLoops(linalg::LinalgOp op) {
  return op.getNumLoops() == op.getNumParallelLoops();
}

namespace {
struct FuseElementwise : fp8::impl::FuseElementwisePassBase<FuseElementwise> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void FuseElementwise::runOnOperation() {
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
        // A producer outside of the consumer's loop is computed once there.
        return producer && consumer && hasOnlyParallelLoops(producer) &&
               hasOnlyParallelLoops(consumer) && producer->hasOneUse() &&
               producer->getBlock() == consumer->getBlock();
      });
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
    signalPassFailure();
}
