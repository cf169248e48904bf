//===- RaiseTransposes.cpp - Copies in another order to transposes --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/RewriteLog.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#define DEBUG_TYPE "fp8-raise-transposes"

namespace mlir::fp8 {
#define GEN_PASS_DEF_RAISETRANSPOSESPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {

struct RaiseTranspose : OpRewritePattern<linalg::GenericOp> {
  RaiseTranspose(MLIRContext *context, llvm::Statistic &numRaised)
      : OpRewritePattern(context), numRaised(numRaised) {}

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
        op.getNumDpsInits() != 1 || !op.isAllParallelLoops())
      return rewriter.notifyMatchFailure(op, "no copy of one tensor");
    auto yield = cast<linalg::YieldOp>(op.getBlock()->getTerminator());
    if (yield.getOperand(0) != op.getBlock()->getArgument(0))
      return rewriter.notifyMatchFailure(op, "computes something");
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    if (!maps[0].isPermutation() || !maps[1].isPermutation())
      return rewriter.notifyMatchFailure(op, "reads or writes no permutation");
    // A dimension of the result is that of the input with the same loop.
    SmallVector<int64_t> permutation;
    for (AffineExpr loop : maps[1].getResults())
      permutation.push_back(*maps[0].getResultPosition(loop));

    Value input = op.getDpsInputOperand(0)->get();
    if (isIdentityPermutation(permutation)) {
      if (input.getType() != op.getResult(0).getType())
        return rewriter.notifyMatchFailure(op, "changes the type");
      rewriter.replaceOp(op, input);
      ++numRaised;
      return success();
    }
    // Kernels transpose matrices. Elementwise operations read in any order, but
    // nothing that moves casts does.
    int64_t rank = permutation.size();
    bool isOfMatrices = rank <= 3 && permutation[rank - 1] == rank - 2 &&
                        permutation[rank - 2] == rank - 1;
    if (!isOfMatrices && llvm::any_of(op->getUsers(), [](Operation *user) {
          auto generic = dyn_cast<linalg::GenericOp>(user);
          return generic && generic.isAllParallelLoops();
        }))
      return rewriter.notifyMatchFailure(op, "is read with other operands");
    // Extents of both may be known in one of them only.
    if (applyPermutation(cast<ShapedType>(input.getType()).getShape(),
                         permutation) !=
        cast<ShapedType>(op.getResult(0).getType()).getShape())
      return rewriter.notifyMatchFailure(op, "changes the type");
    auto transpose = linalg::TransposeOp::create(
        rewriter, op.getLoc(), input, op.getDpsInitOperand(0)->get(),
        permutation, op->getDiscardableAttrDictionary().getValue());
    rewriter.replaceOp(op, transpose);
    ++numRaised;
    return success();
  }

  llvm::Statistic &numRaised;
};

struct RaiseTransposesPass
    : fp8::impl::RaiseTransposesPassBase<RaiseTransposesPass> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RaiseTranspose>(&getContext(), numRaised);
    // Two of them may be none.
    linalg::TransposeOp::getCanonicalizationPatterns(patterns, &getContext());
    fp8::RewriteLog log(DEBUG_TYPE);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                     GreedyRewriteConfig().setListener(&log))))
      signalPassFailure();
  }
};

} // namespace
