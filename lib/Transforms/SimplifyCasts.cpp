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
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

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

/// Reshapes all parts of `source` with `reshape`, which maps a tensor and the
/// wanted type to the reshaped tensor.
Value reshapeParts(PatternRewriter &rewriter, Location loc, Value source,
                   ScaledType type,
                   llvm::function_ref<Value(Value, RankedTensorType)> reshape) {
  auto parts = DisassembleOp::create(rewriter, loc, source);
  Value tensorScaleInv;
  if (type.getHasTensorScale())
    tensorScaleInv =
        reshape(parts.getTensorScaleInv(), type.getTensorScaleInvType());
  return AssembleOp::create(
      rewriter, loc, type, reshape(parts.getPayload(), type.getPayloadType()),
      reshape(parts.getScaleInv(), type.getScaleInvType()), tensorScaleInv);
}

Value collapseParts(PatternRewriter &rewriter, Location loc, Value source,
                    ScaledType type,
                    ArrayRef<ReassociationIndices> reassociation) {
  return reshapeParts(rewriter, loc, source, type,
                      [&](Value part, RankedTensorType partType) -> Value {
                        return tensor::CollapseShapeOp::create(
                            rewriter, loc, partType, part, reassociation);
                      });
}

/// Expansion of static shapes only: the parts' dynamic extents would have to be
/// computed for every part.
Value expandParts(PatternRewriter &rewriter, Location loc, Value source,
                  ScaledType type,
                  ArrayRef<ReassociationIndices> reassociation) {
  return reshapeParts(rewriter, loc, source, type,
                      [&](Value part, RankedTensorType partType) -> Value {
                        return tensor::ExpandShapeOp::create(
                            rewriter, loc, partType, part, reassociation);
                      });
}

//===----------------------------------------------------------------------===//
// Quantize towards the source
//===----------------------------------------------------------------------===//

/// quantize(transpose(x)) -> transpose(quantize(x)): the blocks are permuted
/// with the data, so they hold the same elements.
struct QuantizeOfTranspose : OpRewritePattern<QuantizeOp> {
  QuantizeOfTranspose(MLIRContext *context, Counts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.isUnresolved())
      return rewriter.notifyMatchFailure(op, "scale already given");
    auto transpose = op.getSource().getDefiningOp<linalg::TransposeOp>();
    if (!transpose)
      return rewriter.notifyMatchFailure(op, "source is not a transpose");
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    ScaledType type = op.getResult().getType();
    Value source = transpose.getInput();
    auto sourceType = cast<RankedTensorType>(source.getType());
    ScaledType inner = type.permute(invertPermutationVector(permutation));
    inner = inner.cloneWith(sourceType.getShape(), inner.getBlock());
    if (inner.permute(permutation) != type)
      return rewriter.notifyMatchFailure(op, "transpose refines the shape");
    Value quantized =
        QuantizeOp::create(rewriter, op.getLoc(), inner, source, Value(),
                           Value(), Value(), op.getRecipeAttr());
    rewriter.replaceOpWithNewOp<TransposeOp>(op, quantized, permutation);
    ++counts.moved;
    return success();
  }

  Counts &counts;
};

/// quantize(collapse_shape(x)) -> collapse(quantize(x)).
struct QuantizeOfCollapse : OpRewritePattern<QuantizeOp> {
  QuantizeOfCollapse(MLIRContext *context, Counts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.isUnresolved())
      return rewriter.notifyMatchFailure(op, "scale already given");
    auto collapse = op.getSource().getDefiningOp<tensor::CollapseShapeOp>();
    if (!collapse)
      return rewriter.notifyMatchFailure(op, "source is not a collapse_shape");
    ScaledType type = op.getResult().getType();
    SmallVector<ReassociationIndices> reassociation =
        collapse.getReassociationIndices();
    if (reassociation.size() != static_cast<size_t>(type.getRank()))
      return rewriter.notifyMatchFailure(op, "collapses to rank 0");
    FailureOr<SmallVector<int64_t>> block =
        expandBlock(type.getBlock(), reassociation);
    if (failed(block))
      return rewriter.notifyMatchFailure(op, "a block straddles dimensions");
    ScaledType inner = type.cloneWith(collapse.getSrcType().getShape(), *block);
    Value quantized =
        QuantizeOp::create(rewriter, op.getLoc(), inner, collapse.getSrc(),
                           Value(), Value(), Value(), op.getRecipeAttr());
    rewriter.replaceOp(op, collapseParts(rewriter, op.getLoc(), quantized, type,
                                         reassociation));
    ++counts.moved;
    return success();
  }

  Counts &counts;
};

/// quantize(expand_shape(x)) -> expand(quantize(x)), static shapes.
struct QuantizeOfExpand : OpRewritePattern<QuantizeOp> {
  QuantizeOfExpand(MLIRContext *context, Counts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.isUnresolved())
      return rewriter.notifyMatchFailure(op, "scale already given");
    auto expand = op.getSource().getDefiningOp<tensor::ExpandShapeOp>();
    if (!expand || !expand.getType().hasStaticShape())
      return rewriter.notifyMatchFailure(
          op, "source is not an expand_shape of static shape");
    ScaledType type = op.getResult().getType();
    FailureOr<SmallVector<int64_t>> block =
        collapseBlock(type.getBlock(), expand.getReassociationIndices());
    if (failed(block))
      return rewriter.notifyMatchFailure(op, "a block straddles dimensions");
    ScaledType inner = type.cloneWith(expand.getSrcType().getShape(), *block);
    if (inner.getRank() == 0)
      return rewriter.notifyMatchFailure(op, "expands a scalar");
    Value quantized =
        QuantizeOp::create(rewriter, op.getLoc(), inner, expand.getSrc(),
                           Value(), Value(), Value(), op.getRecipeAttr());
    rewriter.replaceOp(op, expandParts(rewriter, op.getLoc(), quantized, type,
                                       expand.getReassociationIndices()));
    ++counts.moved;
    return success();
  }

  Counts &counts;
};

//===----------------------------------------------------------------------===//
// Dequantize away from the source
//===----------------------------------------------------------------------===//

/// transpose(dequantize(q)) -> dequantize(transpose(q)).
struct TransposeOfDequantize : OpRewritePattern<linalg::TransposeOp> {
  TransposeOfDequantize(MLIRContext *context, Counts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(linalg::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto dequantize = op.getInput().getDefiningOp<DequantizeOp>();
    if (!dequantize || !op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "input is not a dequantize");
    Value moved = TransposeOp::create(
        rewriter, op.getLoc(), dequantize.getSource(), op.getPermutation());
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, op.getResult()[0].getType(),
                                              moved);
    ++counts.moved;
    return success();
  }

  Counts &counts;
};

/// collapse_shape(dequantize(q)) -> dequantize(collapse(q)).
struct CollapseOfDequantize : OpRewritePattern<tensor::CollapseShapeOp> {
  CollapseOfDequantize(MLIRContext *context, Counts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(tensor::CollapseShapeOp op,
                                PatternRewriter &rewriter) const override {
    auto dequantize = op.getSrc().getDefiningOp<DequantizeOp>();
    if (!dequantize)
      return rewriter.notifyMatchFailure(op, "source is not a dequantize");
    ScaledType type = dequantize.getSource().getType();
    FailureOr<SmallVector<int64_t>> block =
        collapseBlock(type.getBlock(), op.getReassociationIndices());
    if (failed(block) || block->empty())
      return rewriter.notifyMatchFailure(op, "a block straddles dimensions");
    Value moved =
        collapseParts(rewriter, op.getLoc(), dequantize.getSource(),
                      type.cloneWith(op.getResultType().getShape(), *block),
                      op.getReassociationIndices());
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, op.getResultType(), moved);
    ++counts.moved;
    return success();
  }

  Counts &counts;
};

/// expand_shape(dequantize(q)) -> dequantize(expand(q)), static shapes.
struct ExpandOfDequantize : OpRewritePattern<tensor::ExpandShapeOp> {
  ExpandOfDequantize(MLIRContext *context, Counts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(tensor::ExpandShapeOp op,
                                PatternRewriter &rewriter) const override {
    auto dequantize = op.getSrc().getDefiningOp<DequantizeOp>();
    if (!dequantize || !op.getType().hasStaticShape())
      return rewriter.notifyMatchFailure(
          op, "source is not a dequantize of static shape");
    ScaledType type = dequantize.getSource().getType();
    FailureOr<SmallVector<int64_t>> block =
        expandBlock(type.getBlock(), op.getReassociationIndices());
    if (failed(block))
      return rewriter.notifyMatchFailure(op, "a block straddles dimensions");
    Value moved = expandParts(rewriter, op.getLoc(), dequantize.getSource(),
                              type.cloneWith(op.getType().getShape(), *block),
                              op.getReassociationIndices());
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, op.getType(), moved);
    ++counts.moved;
    return success();
  }

  Counts &counts;
};

/// extract_slice(dequantize(q)) -> dequantize(slice(q)), where the slice cuts
/// no block: static, unit strides, no rank reduction.
struct SliceOfDequantize : OpRewritePattern<tensor::ExtractSliceOp> {
  SliceOfDequantize(MLIRContext *context, Counts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op,
                                PatternRewriter &rewriter) const override {
    auto dequantize = op.getSource().getDefiningOp<DequantizeOp>();
    if (!dequantize)
      return rewriter.notifyMatchFailure(op, "source is not a dequantize");
    ScaledType type = dequantize.getSource().getType();
    if (op.getType().getRank() != type.getRank() || !op.hasUnitStride() ||
        ShapedType::isDynamicShape(op.getStaticOffsets()) ||
        ShapedType::isDynamicShape(op.getStaticSizes()))
      return rewriter.notifyMatchFailure(op, "slice is not static");
    SmallVector<OpFoldResult> offsets, sizes;
    SmallVector<int64_t> gridSizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      int64_t extent = type.getBlock()[dim];
      int64_t offset = op.getStaticOffset(dim), size = op.getStaticSize(dim);
      bool whole = extent == ScaledType::kWhole;
      // The last block of the slice may be partial only where the source ends.
      bool aligned =
          whole ||
          (offset % extent == 0 &&
           (size % extent == 0 || offset + size == type.getShape()[dim]));
      if (!aligned)
        return rewriter.notifyMatchFailure(op, "slice cuts a block");
      offsets.push_back(rewriter.getIndexAttr(whole ? 0 : offset / extent));
      gridSizes.push_back(whole ? 1 : llvm::divideCeil(size, extent));
      sizes.push_back(rewriter.getIndexAttr(gridSizes.back()));
    }
    Location loc = op.getLoc();
    ScaledType sliced =
        type.cloneWith(op.getType().getShape(), type.getBlock());
    auto parts = DisassembleOp::create(rewriter, loc, dequantize.getSource());
    SmallVector<OpFoldResult> strides = op.getMixedStrides();
    Value payload = tensor::ExtractSliceOp::create(
        rewriter, loc, sliced.getPayloadType(), parts.getPayload(),
        op.getMixedOffsets(), op.getMixedSizes(), strides);
    Value scaleInv = tensor::ExtractSliceOp::create(
        rewriter, loc, sliced.getScaleInvType(), parts.getScaleInv(), offsets,
        sizes, strides);
    Value assembled = AssembleOp::create(rewriter, loc, sliced, payload,
                                         scaleInv, parts.getTensorScaleInv());
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, op.getType(), assembled);
    ++counts.moved;
    return success();
  }

  Counts &counts;
};

//===----------------------------------------------------------------------===//
// Quantize of dequantize
//===----------------------------------------------------------------------===//

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
    rewriter.replaceOp(op, dequantize.getSource());
    ++counts.removed;
    return success();
  }

  Counts &counts;
};

struct SimplifyCasts : fp8::impl::SimplifyCastsPassBase<SimplifyCasts> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

void SimplifyCasts::runOnOperation() {
  Counts counts{numMoved, numRemoved};
  RewritePatternSet patterns(&getContext());
  patterns.add<QuantizeOfTranspose, QuantizeOfCollapse, QuantizeOfExpand,
               TransposeOfDequantize, CollapseOfDequantize, ExpandOfDequantize,
               SliceOfDequantize, QuantizeOfDequantize>(&getContext(), counts);
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
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
