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

#include "fp8/IR/FP8Ops.h"
#include "fp8/Support/RewriteLog.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
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

/// What the patterns count; the pass turns it into statistics.
struct Counts {
  llvm::Statistic &moved;
  llvm::Statistic &removed;
};

//===----------------------------------------------------------------------===//
// Blocks through reshapes
//===----------------------------------------------------------------------===//

/// Block of the expanded tensor that covers the same elements as `block` of
/// the collapsed one. A group of several dimensions has to be cut into single
/// elements or not at all.
FailureOr<SmallVector<int64_t>>
expandBlock(ArrayRef<int64_t> block,
            ArrayRef<ReassociationIndices> reassociation) {
  SmallVector<int64_t> expanded;
  for (auto [extent, group] : llvm::zip_equal(block, reassociation)) {
    if (group.size() > 1 && extent != 1 && extent != ScaledType::kWhole)
      return failure();
    expanded.append(group.size(), extent);
  }
  return expanded;
}

/// The converse: all dimensions of a group have to be cut alike.
FailureOr<SmallVector<int64_t>>
collapseBlock(ArrayRef<int64_t> block,
              ArrayRef<ReassociationIndices> reassociation) {
  SmallVector<int64_t> collapsed;
  for (const ReassociationIndices &group : reassociation) {
    int64_t extent = block[group.front()];
    for (int64_t dim : group)
      if (block[dim] != extent ||
          (group.size() > 1 && extent != 1 && extent != ScaledType::kWhole))
        return failure();
    collapsed.push_back(extent);
  }
  return collapsed;
}

//===----------------------------------------------------------------------===//
// Data movement on scaled values
//===----------------------------------------------------------------------===//

/// Moves every part of `scaled` with `move`, which maps a tensor and the wanted
/// type to the moved tensor.
Value moveParts(PatternRewriter &rewriter, Location loc, Value scaled,
                ScaledType type,
                llvm::function_ref<Value(Value, RankedTensorType)> move) {
  auto parts = DisassembleOp::create(rewriter, loc, scaled);
  Value payload = move(parts.getPayload(), type.getPayloadType());
  Value scaleInv = move(parts.getScaleInv(), type.getScaleInvType());
  Value tensorScaleInv;
  if (type.getHasTensorScale())
    tensorScaleInv =
        move(parts.getTensorScaleInv(), type.getTensorScaleInvType());
  return AssembleOp::create(rewriter, loc, type, payload, scaleInv,
                            tensorScaleInv);
}

// For each operation that moves data:
//   getMovedType(op, type)  the type of the moved value, given the scaled type
//                           of its source;
//   getSourceType(op, type) the converse;
//   move(rewriter, op, q)   the operation on a scaled value.
// The types fail where a block would be cut or straddle dimensions.

FailureOr<ScaledType> getMovedType(linalg::TransposeOp op, ScaledType type) {
  return type.permute(op.getPermutation());
}

FailureOr<ScaledType> getSourceType(linalg::TransposeOp op, ScaledType type) {
  return type.permute(invertPermutationVector(op.getPermutation()));
}

Value move(PatternRewriter &rewriter, linalg::TransposeOp op, Value scaled) {
  return TransposeOp::create(rewriter, op.getLoc(), scaled,
                             op.getPermutation());
}

FailureOr<ScaledType> getMovedType(tensor::CollapseShapeOp op,
                                   ScaledType type) {
  FailureOr<SmallVector<int64_t>> block =
      collapseBlock(type.getBlock(), op.getReassociationIndices());
  if (failed(block) || block->empty())
    return failure();
  return type.cloneWith(op.getResultType().getShape(), *block);
}

FailureOr<ScaledType> getSourceType(tensor::CollapseShapeOp op,
                                    ScaledType type) {
  SmallVector<ReassociationIndices> reassociation =
      op.getReassociationIndices();
  if (reassociation.size() != type.getBlock().size())
    return failure();
  FailureOr<SmallVector<int64_t>> block =
      expandBlock(type.getBlock(), reassociation);
  if (failed(block))
    return failure();
  return type.cloneWith(op.getSrcType().getShape(), *block);
}

Value move(PatternRewriter &rewriter, tensor::CollapseShapeOp op,
           Value scaled) {
  ScaledType type = *getMovedType(op, cast<ScaledType>(scaled.getType()));
  return moveParts(rewriter, op.getLoc(), scaled, type,
                   [&](Value part, RankedTensorType partType) -> Value {
                     return tensor::CollapseShapeOp::create(
                         rewriter, op.getLoc(), partType, part,
                         op.getReassociationIndices());
                   });
}

/// Static shapes only: dynamic extents would have to be computed anew for every
/// part.
FailureOr<ScaledType> getMovedType(tensor::ExpandShapeOp op, ScaledType type) {
  FailureOr<SmallVector<int64_t>> block =
      expandBlock(type.getBlock(), op.getReassociationIndices());
  if (failed(block) || !op.getType().hasStaticShape())
    return failure();
  return type.cloneWith(op.getType().getShape(), *block);
}

FailureOr<ScaledType> getSourceType(tensor::ExpandShapeOp op, ScaledType type) {
  FailureOr<SmallVector<int64_t>> block =
      collapseBlock(type.getBlock(), op.getReassociationIndices());
  if (failed(block) || block->empty() || !op.getType().hasStaticShape())
    return failure();
  return type.cloneWith(op.getSrcType().getShape(), *block);
}

Value move(PatternRewriter &rewriter, tensor::ExpandShapeOp op, Value scaled) {
  ScaledType type = *getMovedType(op, cast<ScaledType>(scaled.getType()));
  return moveParts(rewriter, op.getLoc(), scaled, type,
                   [&](Value part, RankedTensorType partType) -> Value {
                     return tensor::ExpandShapeOp::create(
                         rewriter, op.getLoc(), partType, part,
                         op.getReassociationIndices());
                   });
}

/// Static slices of unit stride and full rank that cut no block. The last block
/// may be partial only where the source ends.
FailureOr<ScaledType> getMovedType(tensor::ExtractSliceOp op, ScaledType type) {
  if (op.getType().getRank() != type.getRank() || !op.hasUnitStride() ||
      ShapedType::isDynamicShape(op.getStaticOffsets()) ||
      ShapedType::isDynamicShape(op.getStaticSizes()))
    return failure();
  for (auto [dim, extent] : llvm::enumerate(type.getBlock())) {
    int64_t offset = op.getStaticOffset(dim), size = op.getStaticSize(dim);
    if (extent != ScaledType::kWhole &&
        (offset % extent != 0 ||
         (size % extent != 0 && offset + size != type.getShape()[dim])))
      return failure();
  }
  return type.cloneWith(op.getType().getShape(), type.getBlock());
}

Value move(PatternRewriter &rewriter, tensor::ExtractSliceOp op, Value scaled) {
  auto sourceType = cast<ScaledType>(scaled.getType());
  ScaledType type = *getMovedType(op, sourceType);
  return moveParts(
      rewriter, op.getLoc(), scaled, type,
      [&](Value part, RankedTensorType partType) -> Value {
        bool isPayload = partType == type.getPayloadType();
        SmallVector<OpFoldResult> offsets, sizes;
        for (auto [dim, extent] : llvm::enumerate(sourceType.getBlock())) {
          int64_t offset = op.getStaticOffset(dim);
          if (!isPayload)
            offset = extent == ScaledType::kWhole ? 0 : offset / extent;
          // The tensor's own factor has one element.
          if (partType.getDimSize(dim) == 1 && part.getType() == partType)
            offset = 0;
          offsets.push_back(rewriter.getIndexAttr(offset));
          sizes.push_back(rewriter.getIndexAttr(partType.getDimSize(dim)));
        }
        return tensor::ExtractSliceOp::create(rewriter, op.getLoc(), partType,
                                              part, offsets, sizes,
                                              op.getMixedStrides());
      });
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// quantize(move(x)) -> move(quantize(x)): the blocks move with the data, so
/// they hold the same elements.
template <typename MoveOp>
struct HoistQuantize : OpRewritePattern<QuantizeOp> {
  HoistQuantize(MLIRContext *context, Counts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.isUnresolved())
      return rewriter.notifyMatchFailure(op, "scale already given");
    auto moveOp = op.getSource().template getDefiningOp<MoveOp>();
    if (!moveOp)
      return rewriter.notifyMatchFailure(op, "source is not moved data");
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
    LDBG() << "quantised before " << moveOp->getName() << ": " << op;
    Value quantized =
        QuantizeOp::create(rewriter, op.getLoc(), *inner, source, Value(),
                           Value(), Value(), op.getRecipeAttr());
    rewriter.replaceOp(op, move(rewriter, moveOp, quantized));
    ++counts.moved;
    return success();
  }

  Counts &counts;
};

/// move(dequantize(q)) -> dequantize(move(q)): bytes move instead of floats.
template <typename MoveOp>
struct SinkDequantize : OpRewritePattern<MoveOp> {
  SinkDequantize(MLIRContext *context, Counts &counts)
      : OpRewritePattern<MoveOp>(context), counts(counts) {}

  LogicalResult matchAndRewrite(MoveOp op,
                                PatternRewriter &rewriter) const override {
    auto dequantize = op->getOperand(0).template getDefiningOp<DequantizeOp>();
    if (!dequantize || op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "source is not a dequantize");
    if (failed(getMovedType(op, dequantize.getSource().getType())))
      return rewriter.notifyMatchFailure(op, "a block would be cut");
    LDBG() << "dequantised after " << op->getName() << ": " << dequantize;
    Value moved = move(rewriter, op, dequantize.getSource());
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, op->getResult(0).getType(),
                                              moved);
    ++counts.moved;
    return success();
  }

  Counts &counts;
};

/// quantize(dequantize(q)) is q where format and blocks agree: the scale that
/// q has serves.
struct QuantizeOfDequantize : OpRewritePattern<QuantizeOp> {
  QuantizeOfDequantize(MLIRContext *context, Counts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    auto dequantize = op.getSource().getDefiningOp<DequantizeOp>();
    if (!op.isUnresolved() || !dequantize)
      return rewriter.notifyMatchFailure(op, "source is not a dequantize");
    if (dequantize.getSource().getType() != op.getResult().getType())
      return rewriter.notifyMatchFailure(op, "format or blocks differ");
    LDBG() << "not quantised again: " << op;
    rewriter.replaceOp(op, dequantize.getSource());
    ++counts.removed;
    return success();
  }

  Counts &counts;
};

struct SimplifyCastsPass : fp8::impl::SimplifyCastsPassBase<SimplifyCastsPass> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

void SimplifyCastsPass::runOnOperation() {
  Counts counts{numMoved, numRemoved};
  RewritePatternSet patterns(&getContext());
  patterns.add<HoistQuantize<linalg::TransposeOp>,
               HoistQuantize<tensor::CollapseShapeOp>,
               HoistQuantize<tensor::ExpandShapeOp>,
               SinkDequantize<linalg::TransposeOp>,
               SinkDequantize<tensor::CollapseShapeOp>,
               SinkDequantize<tensor::ExpandShapeOp>,
               SinkDequantize<tensor::ExtractSliceOp>, QuantizeOfDequantize>(
      &getContext(), counts);
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
        op.emitWarning("double quantisation: a tensor dequantised from ")
        << dequantize.getSource().getType() << " is quantised again to "
        << op.getResult().getType()
        << "; quantise it from its high-precision source";
    diagnostic.attachNote(dequantize.getLoc()) << "dequantised here";
  });
}
