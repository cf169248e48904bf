//===- ConcatenatedCasts.cpp - Casts through tensors put together ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CastMovement.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// Tensors one after the other along a dimension, as `tensor.insert_slice` puts
/// them into an empty one.
struct Concatenation {
  int64_t dim;
  /// In the order of their places.
  SmallVector<tensor::InsertSliceOp> parts;

  int64_t getOffset(size_t part) const {
    return tensor::InsertSliceOp(parts[part]).getStaticOffsets()[dim];
  }
};
} // namespace

/// The dimension in which the slice is a part; nothing unless it is whole in
/// all others.
static std::optional<int64_t> getPartDim(tensor::InsertSliceOp op) {
  std::optional<int64_t> dim;
  ArrayRef<int64_t> shape = op.getType().getShape();
  if (op.getSourceType().getRank() != op.getType().getRank() ||
      !op.getType().hasStaticShape() || !op.getSourceType().hasStaticShape() ||
      !op.hasUnitStride() || ShapedType::isDynamicShape(op.getStaticOffsets()))
    return std::nullopt;
  for (int64_t i = 0, e = shape.size(); i < e; ++i) {
    if (op.getSourceType().getDimSize(i) == shape[i])
      continue;
    if (dim)
      return std::nullopt;
    dim = i;
  }
  return dim;
}

/// What `value` is put together of, without gaps and overlaps.
static FailureOr<Concatenation> getConcatenation(Value value) {
  Concatenation result{-1, {}};
  Value rest = value;
  while (auto insert = rest.getDefiningOp<tensor::InsertSliceOp>()) {
    std::optional<int64_t> dim = getPartDim(insert);
    if (!dim || (result.dim != -1 && *dim != result.dim) ||
        (rest != value && !rest.hasOneUse()))
      return failure();
    result.dim = *dim;
    result.parts.push_back(insert);
    rest = insert.getDest();
  }
  if (result.parts.size() < 2 || !rest.getDefiningOp<tensor::EmptyOp>())
    return failure();
  llvm::sort(result.parts, [&](auto a, auto b) {
    return a.getStaticOffsets()[result.dim] < b.getStaticOffsets()[result.dim];
  });
  int64_t end = 0;
  for (auto [i, part] : llvm::enumerate(result.parts)) {
    if (result.getOffset(i) != end)
      return failure();
    end += part.getSourceType().getDimSize(result.dim);
  }
  if (end != cast<RankedTensorType>(value.getType()).getDimSize(result.dim))
    return failure();
  return result;
}

/// Whether each block of `type` is of one part.
static bool keepsBlocks(const Concatenation &concatenation, ScaledType type) {
  int64_t extent = type.getBlock()[concatenation.dim];
  if (extent == ScaledType::kWhole || type.getHasTensorScale() ||
      !hasWholeBytes(type))
    return false;
  for (size_t i = 0; i < concatenation.parts.size(); ++i)
    if (concatenation.getOffset(i) % extent != 0)
      return false;
  return true;
}

/// `parts`, which have offsets in units of `extent`, in a tensor of `type`.
static Value insertAll(PatternRewriter &rewriter, Location loc,
                       const Concatenation &concatenation, ValueRange parts,
                       RankedTensorType type, int64_t extent) {
  Value all = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                      type.getElementType());
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto partType = cast<RankedTensorType>(part.getType());
    SmallVector<OpFoldResult> offsets(type.getRank(), rewriter.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), rewriter.getIndexAttr(1));
    offsets[concatenation.dim] =
        rewriter.getIndexAttr(concatenation.getOffset(i) / extent);
    all = tensor::InsertSliceOp::create(
        rewriter, loc, part, all, offsets,
        getAsIndexOpFoldResult(rewriter.getContext(), partType.getShape()),
        strides);
  }
  return all;
}

/// The scaled values `parts`, put together to `type`.
static Value concatenate(PatternRewriter &rewriter, Location loc,
                         const Concatenation &concatenation, ValueRange parts,
                         ScaledType type) {
  SmallVector<Value> payloads, factors;
  for (Value part : parts) {
    auto disassembled = DisassembleOp::create(rewriter, loc, part);
    payloads.push_back(disassembled.getPayload());
    factors.push_back(disassembled.getScaleInv());
  }
  Value payload = insertAll(rewriter, loc, concatenation, payloads,
                            type.getPayloadType(), /*extent=*/1);
  Value scaleInv =
      insertAll(rewriter, loc, concatenation, factors, type.getScaleInvType(),
                type.getBlock()[concatenation.dim]);
  return AssembleOp::create(rewriter, loc, type, payload, scaleInv,
                            /*tensorScaleInv=*/Value());
}

namespace {
/// quantize(a ++ b) -> quantize(a) ++ quantize(b) where each block is of one of
/// them, and nobody needs them together in high precision.
struct HoistQuantizeAboveConcatenation : OpRewritePattern<QuantizeOp> {
  HoistQuantizeAboveConcatenation(MLIRContext *context, CastCounts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.isUnresolved())
      return rewriter.notifyMatchFailure(op, "scale already given");
    FailureOr<Concatenation> concatenation = getConcatenation(op.getSource());
    if (failed(concatenation))
      return rewriter.notifyMatchFailure(op, "source is not a concatenation");
    for (Operation *user : op.getSource().getUsers()) {
      auto quantize = dyn_cast<QuantizeOp>(user);
      if (!quantize || !quantize.isUnresolved() || quantize.getSeed())
        return rewriter.notifyMatchFailure(
            op, "what is put together is needed in high precision too");
      if (!keepsBlocks(*concatenation, quantize.getResult().getType()))
        return rewriter.notifyMatchFailure(
            op, "a block, and its amax, is of several parts");
    }
    ScaledType type = op.getResult().getType();
    SmallVector<Value> parts;
    for (tensor::InsertSliceOp part : concatenation->parts)
      parts.push_back(QuantizeOp::create(
          rewriter, op.getLoc(),
          type.cloneWith(part.getSourceType().getShape(), type.getBlock()),
          part.getSource(), Value(), Value(), Value(), op.getRecipeAttr()));
    rewriter.replaceOp(
        op, concatenate(rewriter, op.getLoc(), *concatenation, parts, type));
    ++counts.moved;
    return success();
  }

  CastCounts &counts;
};

/// dequantize(a) ++ dequantize(b) -> dequantize(a ++ b): codes are put
/// together.
struct SinkDequantizeBelowConcatenation
    : OpRewritePattern<tensor::InsertSliceOp> {
  SinkDequantizeBelowConcatenation(MLIRContext *context, CastCounts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(tensor::InsertSliceOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<Concatenation> concatenation = getConcatenation(op.getResult());
    if (failed(concatenation))
      return rewriter.notifyMatchFailure(op, "not all that is put together");
    ScaledType type;
    SmallVector<Value> parts;
    for (tensor::InsertSliceOp part : concatenation->parts) {
      auto dequantize = part.getSource().getDefiningOp<DequantizeOp>();
      if (!dequantize)
        return rewriter.notifyMatchFailure(op, "a part is not dequantized");
      ScaledType whole = dequantize.getSource().getType().cloneWith(
          op.getType().getShape(), dequantize.getSource().getType().getBlock());
      if (type && type != whole)
        return rewriter.notifyMatchFailure(op, "formats or blocks differ");
      type = whole;
      parts.push_back(dequantize.getSource());
    }
    if (!keepsBlocks(*concatenation, type))
      return rewriter.notifyMatchFailure(op, "a block would be of two parts");
    Value all = concatenate(rewriter, op.getLoc(), *concatenation, parts, type);
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, op.getType(), all);
    ++counts.moved;
    return success();
  }

  CastCounts &counts;
};
} // namespace

void fp8::populateConcatenationPatterns(RewritePatternSet &patterns,
                                        CastCounts &counts) {
  patterns
      .add<HoistQuantizeAboveConcatenation, SinkDequantizeBelowConcatenation>(
          patterns.getContext(), counts);
}
