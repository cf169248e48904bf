//===- DecomposeAggregates.cpp - Aggregates to structured operations ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GatherTiles.h"
#include "GatherWindows.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DECOMPOSEAGGREGATESPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using mlir::fp8::gatherPack;
using mlir::fp8::gatherSlices;
using mlir::fp8::gatherUnPack;
using mlir::fp8::gatherWindow;
using mlir::fp8::isWindow;

/// `tensor` as a value of a type with other static extents.
static Value castTo(RewriterBase &rewriter, Location loc, Value tensor,
                    RankedTensorType type) {
  if (tensor.getType() == type)
    return tensor;
  return tensor::CastOp::create(rewriter, loc, type, tensor);
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

/// The extents that tensor.reshape takes from a tensor.
static SmallVector<OpFoldResult>
getReshapeSizes(OpBuilder &b, tensor::ReshapeOp op, RankedTensorType type) {
  Location loc = op.getLoc();
  auto extents = op.getShape().getDefiningOp<tensor::FromElementsOp>();
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(b.getIndexAttr(size));
      continue;
    }
    Value position = arith::ConstantIndexOp::create(b, loc, dim);
    Value extent =
        extents ? extents.getElements()[dim]
                : tensor::ExtractOp::create(b, loc, op.getShape(), position)
                      .getResult();
    if (!extent.getType().isIndex())
      extent = arith::IndexCastOp::create(b, loc, b.getIndexType(), extent);
    sizes.push_back(getAsOpFoldResult(extent));
  }
  return sizes;
}

/// Stops the program if a reshape's source has not as many elements as its
/// result: nothing else compares them.
static void assertAsManyElements(OpBuilder &b, Location loc, Value source,
                                 ArrayRef<OpFoldResult> sizes) {
  auto count = [&](ArrayRef<OpFoldResult> extents) -> Value {
    Value number = arith::ConstantIndexOp::create(b, loc, 1);
    for (OpFoldResult extent : extents)
      number = arith::MulIOp::create(
          b, loc, number, getValueOrCreateConstantIndexOp(b, loc, extent));
    return number;
  };
  Value isEqual = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::eq,
      count(tensor::getMixedSizes(b, loc, source)), count(sizes));
  cf::AssertOp::create(b, loc, isEqual,
                       "tensor.reshape: expected as many elements as before");
}

/// Whether an unknown extent and one of 0 become one. In memory upstream makes
/// 0 of both, which the verifier of memref.collapse_shape refuses.
static bool collapsesUnknownZero(RankedTensorType type,
                                 ArrayRef<ReassociationIndices> groups) {
  return llvm::any_of(groups, [&](ArrayRef<int64_t> group) {
    auto isZero = [&](int64_t dim) { return type.getDimSize(dim) == 0; };
    return llvm::any_of(group, isZero) && llvm::any_of(group, [&](int64_t dim) {
             return type.isDynamicDim(dim);
           });
  });
}

/// A tensor without elements, in another shape.
static Value collapseNothing(RewriterBase &b, Location loc, Value source,
                             ArrayRef<ReassociationIndices> groups) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
  SmallVector<OpFoldResult> collapsed;
  for (ArrayRef<int64_t> group : groups) {
    OpFoldResult size = b.getIndexAttr(1);
    for (int64_t dim : group)
      size = affine::makeComposedFoldedAffineApply(
          b, loc, b.getAffineSymbolExpr(0) * b.getAffineSymbolExpr(1),
          {size, sizes[dim]});
    collapsed.push_back(size);
  }
  return tensor::EmptyOp::create(b, loc, collapsed,
                                 getElementTypeOrSelf(source.getType()));
}

/// All dimensions as one; none of a tensor of one element.
static SmallVector<ReassociationIndices> getWhole(int64_t rank) {
  SmallVector<ReassociationIndices> whole;
  if (rank != 0)
    whole.push_back(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  return whole;
}

static Value flatten(RewriterBase &b, Location loc, Value source) {
  auto type = cast<RankedTensorType>(source.getType());
  if (type.getRank() == 1)
    return source;
  // No dimensions are one of one element.
  if (type.getRank() == 0)
    return tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get({1}, type.getElementType()), source,
        ArrayRef<ReassociationIndices>());
  if (collapsesUnknownZero(type, getWhole(type.getRank())))
    return collapseNothing(b, loc, source, getWhole(type.getRank()));
  return tensor::CollapseShapeOp::create(b, loc, source,
                                         getWhole(type.getRank()));
}

/// `type`, of such extents, from a tensor of one dimension.
static Value expandFlat(RewriterBase &b, Location loc, Value flat,
                        RankedTensorType type, ArrayRef<OpFoldResult> sizes) {
  if (type.getRank() == 1)
    return castTo(b, loc, flat, type);
  // A static shape has a known extent also where it is dynamic here.
  int64_t count =
      type.hasStaticShape() ? type.getNumElements() : ShapedType::kDynamic;
  flat = castTo(b, loc, flat,
                RankedTensorType::get({count}, type.getElementType()));
  return tensor::ExpandShapeOp::create(b, loc, type, flat,
                                       getWhole(type.getRank()), sizes);
}

/// tensor.reshape takes its shape from a tensor, which is in the memory of the
/// device on a GPU. As collapse and expansion it has none.
static LogicalResult lowerReshape(RewriterBase &rewriter,
                                  tensor::ReshapeOp op) {
  Location loc = op.getLoc();
  auto sourceType = dyn_cast<RankedTensorType>(op.getSource().getType());
  auto type = dyn_cast<RankedTensorType>(op.getResult().getType());
  if (!sourceType || !type)
    return failure();
  SmallVector<OpFoldResult> sizes = getReshapeSizes(rewriter, op, type);
  if (!sourceType.hasStaticShape() || !type.hasStaticShape())
    assertAsManyElements(rewriter, loc, op.getSource(), sizes);
  Value result;
  if (type.getRank() == 0) {
    SmallVector<int64_t> ones(sourceType.getRank(), 1);
    Value one = castTo(rewriter, loc, op.getSource(),
                       RankedTensorType::get(ones, type.getElementType()));
    result = tensor::CollapseShapeOp::create(rewriter, loc, type, one,
                                             ArrayRef<ReassociationIndices>());
  } else {
    result = expandFlat(rewriter, loc, flatten(rewriter, loc, op.getSource()),
                        type, sizes);
  }
  rewriter.replaceOp(op, result);
  return success();
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//
// Upstream fills all of the result, and then writes the source into it.

/// What filling a border by itself has to save, since each is a loop more.
static constexpr int64_t kBorderBytes = int64_t(8) << 20;

/// A piece of so much memory takes the time of the whole.
static constexpr int64_t kSectorBytes = 32;

/// What filling the borders by themselves takes, in bytes.
static int64_t getBorderCost(tensor::PadOp op) {
  RankedTensorType type = op.getResultType();
  int64_t cost = 0, inner = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    for (int64_t amount : {op.getStaticLow()[dim], op.getStaticHigh()[dim]})
      if (amount > 0)
        cost += kBorderBytes +
                ShapedType::getNumElements(type.getShape().take_front(dim)) *
                    std::max(amount * inner, kSectorBytes);
    inner *= type.getDimSize(dim);
  }
  return cost;
}

/// Whether the borders of `op` are known, and little of what it writes.
static bool hasNarrowBorders(tensor::PadOp op) {
  RankedTensorType type = op.getResultType();
  auto isAmount = [](int64_t amount) {
    return !ShapedType::isDynamic(amount) && amount >= 0;
  };
  if (!type.hasStaticShape() || !op.getSourceType().hasStaticShape() ||
      !type.getElementType().isIntOrFloat() || !op.getConstantPaddingValue() ||
      !llvm::all_of(op.getStaticLow(), isAmount) ||
      !llvm::all_of(op.getStaticHigh(), isAmount))
    return false;
  // The loop that fills all is one as well.
  int64_t bytes = llvm::divideCeil(
      type.getNumElements() * type.getElementTypeBitWidth(), 8);
  return getBorderCost(op) < bytes + kBorderBytes;
}

static bool hasNoElements(RankedTensorType type) {
  return llvm::is_contained(type.getShape(), 0);
}

/// Whether `op` has nothing to copy, of which upstream's slice is none that the
/// verifier takes: its offset lies beyond an extent of 0.
static bool hasNothingToCopy(tensor::PadOp op) {
  return op.getConstantPaddingValue() && (hasNoElements(op.getSourceType()) ||
                                          hasNoElements(op.getResultType()));
}

/// Fills all of the result.
static void fillPad(RewriterBase &rewriter, tensor::PadOp op) {
  ReifiedRankedShapedTypeDims sizes;
  [[maybe_unused]] LogicalResult isKnown =
      reifyResultShapes(rewriter, op, sizes);
  assert(succeeded(isKnown) && "a pad says what its sizes are");
  Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), sizes.front(),
                                        op.getType().getElementType());
  rewriter.replaceOpWithNewOp<linalg::FillOp>(op, op.getConstantPaddingValue(),
                                              empty);
}

/// Fills the borders of each dimension, of what those of the ones before leave,
/// and writes the source between them.
static void padBorders(RewriterBase &rewriter, tensor::PadOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = op.getResultType();
  Type element = type.getElementType();
  Value padding = op.getConstantPaddingValue();
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> offsets(rank, rewriter.getIndexAttr(0)),
      ones(rank, rewriter.getIndexAttr(1)),
      sizes = getAsIndexOpFoldResult(rewriter.getContext(), type.getShape());
  Value result = tensor::EmptyOp::create(rewriter, loc, sizes, element);
  auto fill = [&](int64_t dim, int64_t from, int64_t amount) {
    if (amount == 0)
      return;
    SmallVector<OpFoldResult> place(offsets), border(sizes);
    place[dim] = rewriter.getIndexAttr(from);
    border[dim] = rewriter.getIndexAttr(amount);
    Value empty = tensor::EmptyOp::create(rewriter, loc, border, element);
    Value filled =
        linalg::FillOp::create(rewriter, loc, padding, empty).getResult(0);
    result = tensor::InsertSliceOp::create(rewriter, loc, filled, result, place,
                                           border, ones);
  };
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t low = op.getStaticLow()[dim], high = op.getStaticHigh()[dim];
    fill(dim, 0, low);
    fill(dim, type.getDimSize(dim) - high, high);
    offsets[dim] = rewriter.getIndexAttr(low);
    sizes[dim] = rewriter.getIndexAttr(op.getSourceType().getDimSize(dim));
  }
  rewriter.replaceOpWithNewOp<tensor::InsertSliceOp>(op, op.getSource(), result,
                                                     offsets, sizes, ones);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

static bool hasDynamicTiles(ArrayRef<OpFoldResult> tiles) {
  return llvm::any_of(
      tiles, [](OpFoldResult tile) { return !getConstantIntValue(tile); });
}

/// Whether `op` is a constant of equal elements that is too large to be spelled
/// out in a program's data.
static bool isLargeSplat(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  auto type = constant ? dyn_cast<RankedTensorType>(constant.getType())
                       : RankedTensorType();
  if (!type || !isa<SplatElementsAttr>(constant.getValue()) ||
      !type.getElementType().isIntOrFloat())
    return false;
  // Smaller ones share bytes.
  unsigned bits = type.getElementTypeBitWidth();
  constexpr int64_t mostBits = int64_t(8) << 20;
  return bits % 8 == 0 && type.getNumElements() > mostBits / bits;
}

/// Replaces `op` by operations that upstream bufferizes, if it is an aggregate.
static LogicalResult decompose(RewriterBase &rewriter, Operation *op) {
  rewriter.setInsertionPoint(op);
  if (auto reshape = dyn_cast<tensor::ReshapeOp>(op))
    return lowerReshape(rewriter, reshape);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    Value empty = collapseNothing(rewriter, op->getLoc(), collapse.getSrc(),
                                  collapse.getReassociationIndices());
    rewriter.replaceOp(
        op, castTo(rewriter, op->getLoc(), empty, collapse.getResultType()));
    return success();
  }
  if (auto pack = dyn_cast<linalg::PackOp>(op)) {
    if (!hasDynamicTiles(pack.getMixedTiles()))
      return linalg::lowerPack(rewriter, pack);
    gatherPack(rewriter, pack);
    return success();
  }
  if (auto unpack = dyn_cast<linalg::UnPackOp>(op)) {
    if (!hasDynamicTiles(unpack.getMixedTiles()))
      return linalg::lowerUnPack(rewriter, unpack);
    gatherUnPack(rewriter, unpack);
    return success();
  }
  if (auto gather = dyn_cast<tensor::GatherOp>(op)) {
    gatherSlices(rewriter, gather);
    return success();
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    if (hasNothingToCopy(pad))
      fillPad(rewriter, pad);
    else
      padBorders(rewriter, pad);
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto type = cast<RankedTensorType>(constant.getType());
    Location loc = op->getLoc();
    Value element =
        arith::ConstantOp::create(rewriter, loc,
                                  cast<SplatElementsAttr>(constant.getValue())
                                      .getSplatValue<TypedAttr>());
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    rewriter.replaceOpWithNewOp<linalg::FillOp>(op, element, empty);
    return success();
  }
  auto aggregate = cast<linalg::AggregatedOpInterface>(op);
  FailureOr<SmallVector<Value>> parts = aggregate.decomposeOperation(rewriter);
  if (failed(parts))
    return failure();
  rewriter.replaceOp(op, *parts);
  return success();
}

namespace {
struct DecomposeAggregatesPass
    : fp8::impl::DecomposeAggregatesPassBase<DecomposeAggregatesPass> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<Operation *> ops, windows;
    getOperation()->walk([&](Operation *op) {
      auto pad = dyn_cast<tensor::PadOp>(op);
      auto insert = dyn_cast<tensor::InsertSliceOp>(op);
      if (gatherWindows &&
          ((pad && isWindow(pad)) || (insert && isWindow(insert)))) {
        windows.push_back(op);
        return;
      }
      auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
      if ((collapse &&
           collapsesUnknownZero(collapse.getSrcType(),
                                collapse.getReassociationIndices())) ||
          (pad && (hasNothingToCopy(pad) || hasNarrowBorders(pad))) ||
          isa<linalg::AggregatedOpInterface, linalg::PackOp, linalg::UnPackOp,
              tensor::GatherOp, tensor::ReshapeOp>(op) ||
          isLargeSplat(op))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : windows) {
      rewriter.setInsertionPoint(op);
      if (auto pad = dyn_cast<tensor::PadOp>(op))
        gatherWindow(rewriter, pad);
      else
        gatherWindow(rewriter, cast<tensor::InsertSliceOp>(op));
    }
    for (Operation *op : ops) {
      if (failed(decompose(rewriter, op))) {
        op->emitOpError("expected an operation that decomposes into "
                        "structured ones, but upstream could not");
        return signalPassFailure();
      }
    }
  }
};
} // namespace
