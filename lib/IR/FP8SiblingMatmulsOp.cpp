//===- FP8SiblingMatmulsOp.cpp - Matmuls of one launch --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/FP8Ops.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetOperations.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

SmallVector<MatmulOp, 4> SiblingMatmulsOp::getMatmuls() {
  return llvm::to_vector<4>(getBody().front().getOps<MatmulOp>());
}

bool SiblingMatmulsOp::sharesA() {
  SmallVector<MatmulOp, 4> matmuls = getMatmuls();
  return llvm::all_of(
      matmuls, [&](MatmulOp op) { return op.getA() == matmuls[0].getA(); });
}

bool SiblingMatmulsOp::isDual() {
  SmallVector<MatmulOp, 4> matmuls = getMatmuls();
  if (matmuls.size() != 2 || matmuls[0].getA() != matmuls[1].getA())
    return false;
  auto read = matmuls[0].getResult();
  return read.hasOneUse() &&
         llvm::is_contained(matmuls[1].getEpilogueOperands(), read) &&
         read.getType().getShape() ==
             matmuls[1].getResult().getType().getShape() &&
         !matmuls[0].getAmax();
}

LogicalResult SiblingMatmulsOp::verifyRegions() {
  // sibling_matmuls_c1
  Block &block = getBody().front();
  for (Operation &op : block.without_terminator())
    if (!isa<MatmulOp>(op))
      return emitOpError("expected the body to have matmuls only, but got '")
             << op.getName() << "'";
  bool isDual = this->isDual();
  for (Operation &op : block.without_terminator())
    for (Operation *user : op.getUsers())
      if (user != block.getTerminator() && !isDual)
        return emitOpError(
            "expected matmuls that do not use each other's results, or a pair "
            "whose second reads the first one's result, and nothing else does");
  SmallVector<MatmulOp, 4> matmuls = getMatmuls();
  if (matmuls.empty())
    return emitOpError("expected at least one matmul, but got none");
  // sibling_matmuls_c2
  llvm::SmallSetVector<Value, 8> results, yielded;
  for (MatmulOp op : ArrayRef(matmuls).drop_front(isDual ? 1 : 0))
    results.insert_range(op.getResults());
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (yield)
    yielded.insert_range(yield.getValues());
  if (yielded.size() != results.size() || !set_is_subset(yielded, results))
    return emitOpError("expected the body to yield the results of its matmuls, "
                       "all that none of them reads");
  if (yield.getValues().getTypes() != getResultTypes())
    return emitOpError("expected results of ")
           << yield.getValues().getTypes() << ", but got " << getResultTypes();
  // sibling_matmuls_c3
  bool sharesB = llvm::all_of(
      matmuls, [&](MatmulOp op) { return op.getB() == matmuls[0].getB(); });
  if (!sharesA() && !sharesB)
    return emitOpError("expected matmuls of the same A or of the same B");
  return success();
}

namespace {
/// Yields once what a group yields several times.
struct MergeRepeatedResults : OpRewritePattern<SiblingMatmulsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SiblingMatmulsOp op,
                                PatternRewriter &rewriter) const override {
    auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
    llvm::SmallSetVector<Value, 8> yielded;
    yielded.insert_range(yield.getValues());
    if (yielded.size() == yield.getValues().size())
      return rewriter.notifyMatchFailure(op, "yields no value twice");
    auto merged = SiblingMatmulsOp::create(
        rewriter, op.getLoc(), ValueRange(yielded.getArrayRef()).getTypes(),
        ValueRange(), op->getDiscardableAttrDictionary().getValue());
    SmallVector<Value> results;
    for (Value value : yield.getValues())
      results.push_back(merged->getResult(
          std::distance(yielded.begin(), llvm::find(yielded, value))));
    rewriter.modifyOpInPlace(
        yield, [&] { yield.getValuesMutable().assign(yielded.getArrayRef()); });
    rewriter.inlineRegionBefore(op.getBody(), merged.getBody(),
                                merged.getBody().begin());
    rewriter.replaceOp(op, results);
    return success();
  }
};

/// Puts a product that is alone in place of its group.
struct InlineSingleProduct : OpRewritePattern<SiblingMatmulsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SiblingMatmulsOp op,
                                PatternRewriter &rewriter) const override {
    if (!llvm::hasSingleElement(op.getBody().front().without_terminator()))
      return rewriter.notifyMatchFailure(op, "has several matmuls");
    if (!op->getDiscardableAttrs().empty())
      return rewriter.notifyMatchFailure(op, "has attributes of its own");
    Operation *yield = op.getBody().front().getTerminator();
    rewriter.inlineBlockBefore(&op.getBody().front(), op);
    rewriter.replaceOp(op, yield->getOperands());
    rewriter.eraseOp(yield);
    return success();
  }
};
} // namespace

void SiblingMatmulsOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                   MLIRContext *context) {
  patterns.add<MergeRepeatedResults, InlineSingleProduct>(context);
}
