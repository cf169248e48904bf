//===- SimplifyCasts.cpp - Fewer casts, at cheaper places -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: quantizes that name a recipe, dequantizes. Leaves: the same values
// with quantizes at the source of data movement, where common subexpression
// elimination merges them, and dequantizes below it.
//
// Runs before scales are given: as long as a quantize is a function of its
// source and a recipe, moving it moves its amax and scale with it.
//
//===----------------------------------------------------------------------===//

#include "CastMovement.h"
#include "Utils/Widening.h"
#include "fp8/Support/RewriteLog.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-simplify-casts"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SIMPLIFYCASTSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Whether a tensor is needed in its codes only: those of a copy that is made
/// anyway would be made twice.
bool isOnlyQuantized(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    auto quantize = dyn_cast<QuantizeOp>(user);
    return quantize && quantize.isUnresolved();
  });
}

/// Whether it is a contraction, by way of more movement perhaps, that reads
/// `value`: it takes codes as they are, and there are fewer of them before.
bool feedsContractions(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (isa<linalg::TransposeOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
            tensor::CastOp>(user))
      return feedsContractions(user->getResult(0));
    auto linalgOp = dyn_cast<linalg::LinalgOp>(user);
    return linalgOp && linalg::isaContractionOpInterface(linalgOp);
  });
}

/// Whether `op` moves a tensor's elements, or tells them apart otherwise.
bool movesData(Operation *op) {
  return isa_and_present<linalg::TransposeOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp, tensor::CastOp,
                         linalg::BroadcastOp, tensor::PadOp,
                         tensor::InsertSliceOp, tensor::ExtractSliceOp>(op);
}

/// Whether rows are all that may be quantized of what `collapse` makes them of.
/// Above, there is no other quantize to meet, and no pass that computes the
/// batches, and rows are what passes write best.
bool isOnlyReadAsRows(tensor::CollapseShapeOp collapse) {
  auto groups = collapse.getReassociationIndices();
  Operation *definition = collapse.getSrc().getDefiningOp();
  // No pass is over the four dimensions of such a result.
  if (isa_and_present<AttentionOp>(definition))
    return true;
  if (groups.size() < 2 || groups.back().size() != 1)
    return false;
  if (movesData(definition) || isa_and_present<DequantizeOp>(definition))
    return false;
  // Passes are over three dimensions at most.
  if (isa_and_present<linalg::LinalgOp>(definition) &&
      collapse.getSrcType().getRank() <= 3)
    return false;
  return llvm::none_of(collapse.getSrc().getUsers(), [&](Operation *user) {
    if (auto other = dyn_cast<tensor::CollapseShapeOp>(user))
      return other.getReassociation() != collapse.getReassociation();
    return movesData(user) || isa<QuantizeOp>(user);
  });
}

/// quantize(move(x)) -> move(quantize(x)): the blocks move with the data, so
/// they hold the same elements.
template <typename MoveOp>
struct HoistQuantize : OpRewritePattern<QuantizeOp> {
  HoistQuantize(MLIRContext *context, CastCounts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.isUnresolved())
      return rewriter.notifyMatchFailure(op, "scale already given");
    if (op.getSeed())
      return rewriter.notifyMatchFailure(op, "its random numbers are "
                                             "position-dependent");
    auto moveOp = op.getSource().template getDefiningOp<MoveOp>();
    if (!moveOp)
      return rewriter.notifyMatchFailure(op, "source is not moved data");
    if (auto collapse =
            dyn_cast<tensor::CollapseShapeOp>(moveOp.getOperation());
        collapse && isOnlyReadAsRows(collapse))
      return rewriter.notifyMatchFailure(op, "nothing to meet above");
    if (isa<tensor::PadOp>(moveOp) && !isOnlyQuantized(op.getSource()))
      return rewriter.notifyMatchFailure(
          op, "what is padded is needed in high precision too");
    ScaledType type = op.getResult().getType();
    FailureOr<ScaledType> inner = getSourceType(moveOp, type);
    if (failed(inner))
      return rewriter.notifyMatchFailure(op, "a block straddles dimensions");
    Value source = moveOp->getOperand(0);
    inner = inner->cloneWith(
        cast<RankedTensorType>(source.getType()).getShape(), inner->getBlock());
    FailureOr<ScaledType> moved = getMovedType(moveOp, *inner);
    if (failed(moved) || *moved != type)
      return rewriter.notifyMatchFailure(op, "the movement refines the shape");
    LDBG() << "quantized before " << moveOp->getName() << ": " << op;
    Value quantized =
        QuantizeOp::create(rewriter, op.getLoc(), *inner, source, Value(),
                           Value(), Value(), op.getRecipeAttr());
    rewriter.replaceOp(op, move(rewriter, moveOp, quantized));
    ++counts.moved;
    return success();
  }

  CastCounts &counts;
};

/// move(dequantize(q)) -> dequantize(move(q)): bytes move instead of floats.
template <typename MoveOp>
struct SinkDequantize : OpRewritePattern<MoveOp> {
  SinkDequantize(MLIRContext *context, CastCounts &counts)
      : OpRewritePattern<MoveOp>(context), counts(counts) {}

  LogicalResult matchAndRewrite(MoveOp op,
                                PatternRewriter &rewriter) const override {
    auto dequantize = op->getOperand(0).template getDefiningOp<DequantizeOp>();
    if (!dequantize || op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "source is not a dequantize");
    if (failed(getMovedType(op, dequantize.getSource().getType())))
      return rewriter.notifyMatchFailure(op, "a block would be cut");
    if (isa<linalg::BroadcastOp>(op.getOperation()) &&
        !feedsContractions(op->getResult(0)))
      return rewriter.notifyMatchFailure(
          op, "more would be dequantized, and by no contraction");
    LDBG() << "dequantized after " << op->getName() << ": " << dequantize;
    Value moved = move(rewriter, op, dequantize.getSource());
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, op->getResult(0).getType(),
                                              moved);
    ++counts.moved;
    return success();
  }

  CastCounts &counts;
};

/// quantize(dequantize(q)) is q where format and blocks agree: the scale that
/// q has serves.
struct QuantizeOfDequantize : OpRewritePattern<QuantizeOp> {
  QuantizeOfDequantize(MLIRContext *context, CastCounts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    auto dequantize = op.getSource().getDefiningOp<DequantizeOp>();
    if (!op.isUnresolved() || !dequantize)
      return rewriter.notifyMatchFailure(op, "source is not a dequantize");
    if (dequantize.getSource().getType() != op.getResult().getType())
      return rewriter.notifyMatchFailure(op, "format or blocks differ");
    LDBG() << "not quantized again: " << op;
    rewriter.replaceOp(op, dequantize.getSource());
    ++counts.removed;
    return success();
  }

  CastCounts &counts;
};

/// quantize(extend(x)) is quantize(x): numbers that are only widened are the
/// same, and stand below what moves them then.
struct QuantizeOfWidening : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    Value narrow = skipWidening(op.getSource());
    if (!op.isUnresolved() || narrow == op.getSource())
      return rewriter.notifyMatchFailure(op, "source is not widened");
    rewriter.modifyOpInPlace(op, [&] { op.getSourceMutable().assign(narrow); });
    return success();
  }
};

/// A copy of a tensor is the tensor.
struct FoldCopy : OpRewritePattern<linalg::CopyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::CopyOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() ||
        op.getInputs().front().getType() != op->getResult(0).getType())
      return rewriter.notifyMatchFailure(op, "converts, or has memory");
    rewriter.replaceOp(op, op.getInputs().front());
    return success();
  }
};

struct SimplifyCastsPass : fp8::impl::SimplifyCastsPassBase<SimplifyCastsPass> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

void SimplifyCastsPass::runOnOperation() {
  CastCounts counts{numMoved, numRemoved};
  RewritePatternSet patterns(&getContext());
  patterns.add<
      HoistQuantize<linalg::TransposeOp>,
      HoistQuantize<tensor::CollapseShapeOp>,
      HoistQuantize<tensor::ExpandShapeOp>, HoistQuantize<tensor::CastOp>,
      HoistQuantize<linalg::BroadcastOp>, HoistQuantize<tensor::PadOp>,
      SinkDequantize<linalg::TransposeOp>,
      SinkDequantize<tensor::CollapseShapeOp>,
      SinkDequantize<tensor::ExpandShapeOp>,
      SinkDequantize<tensor::ExtractSliceOp>, SinkDequantize<tensor::CastOp>,
      SinkDequantize<linalg::BroadcastOp>, QuantizeOfDequantize>(&getContext(),
                                                                 counts);
  patterns.add<FoldCopy, QuantizeOfWidening>(&getContext());
  populateConcatenationPatterns(patterns, counts);
  populateGatherPatterns(patterns, counts);
  RewriteLog log(DEBUG_TYPE);
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                   GreedyRewriteConfig().setListener(&log))))
    return signalPassFailure();

  getOperation()->walk([&](QuantizeOp op) {
    auto dequantize = op.getSource().getDefiningOp<DequantizeOp>();
    if (!dequantize)
      return;
    ++numDouble;
    InFlightDiagnostic diagnostic =
        op.emitWarning("double quantization: a tensor dequantized from ")
        << dequantize.getSource().getType() << " is quantized again to "
        << op.getResult().getType()
        << "; quantize it from its high-precision source";
    diagnostic.attachNote(dequantize.getLoc()) << "dequantized here";
  });
}
