//===- GatherTiles.cpp - Loops that gather elements -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GatherTiles.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace {
/// Where dimensions of a plain tensor are in its packed one.
template <typename Op>
struct PackedDims {
  explicit PackedDims(Op op)
      : tiles(op.getMixedTiles()), tiled(op.getInnerDimsPos()),
        order(op.getOuterDimsPerm()) {}

  /// The packed dimension that counts the tiles of `dim`.
  int64_t getOuter(int64_t dim) const {
    return order.empty() ? dim : llvm::find(order, dim) - order.begin();
  }
  /// Which of the tiles' extents is that of `dim`; nothing if it is not cut.
  std::optional<int64_t> getTile(int64_t dim) const {
    const int64_t *found = llvm::find(tiled, dim);
    if (found == tiled.end())
      return std::nullopt;
    return found - tiled.begin();
  }

  SmallVector<OpFoldResult> tiles;
  ArrayRef<int64_t> tiled, order;
};
} // namespace

/// A tensor of `sizes` whose elements are those of `source` where `getIndices`,
/// given their own, says.
static Value gather(
    RewriterBase &rewriter, Location loc, Value source, RankedTensorType type,
    ArrayRef<OpFoldResult> sizes,
    llvm::function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)>
        getIndices) {
  int64_t rank = type.getRank();
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      rewriter, loc, empty.getType(), ValueRange(), empty,
      ArrayRef{rewriter.getMultiDimIdentityMap(rank)}, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange) {
        ImplicitLocOpBuilder b(loc, inner);
        SmallVector<Value> own;
        for (int64_t dim = 0; dim < rank; ++dim)
          own.push_back(linalg::IndexOp::create(b, dim));
        Value element =
            tensor::ExtractOp::create(b, source, getIndices(b, own));
        linalg::YieldOp::create(b, element);
      });
  Value result = generic.getResult(0);
  return result.getType() == type
             ? result
             : tensor::CastOp::create(rewriter, loc, type, result);
}

void fp8::gatherPack(RewriterBase &rewriter, linalg::PackOp op) {
  Location loc = op.getLoc();
  PackedDims<linalg::PackOp> dims(op);
  int64_t rank = op.getSourceRank();
  Value source = op.getSource();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, op.getDest());
  if (Value padding = op.getPaddingValue()) {
    AffineExpr tiles = rewriter.getAffineSymbolExpr(0);
    AffineExpr tile = rewriter.getAffineSymbolExpr(1);
    AffineExpr size = rewriter.getAffineSymbolExpr(2);
    SmallVector<OpFoldResult> low(rank, rewriter.getIndexAttr(0)), high = low;
    for (int64_t dim = 0; dim < rank; ++dim)
      if (std::optional<int64_t> k = dims.getTile(dim))
        high[dim] = affine::makeComposedFoldedAffineApply(
            rewriter, loc, tiles * tile - size,
            {sizes[dims.getOuter(dim)], dims.tiles[*k],
             tensor::getMixedSize(rewriter, loc, source, dim)});
    source = tensor::PadOp::create(rewriter, loc, /*resultType=*/Type(), source,
                                   low, high, padding);
  }
  Value packed = gather(
      rewriter, loc, source, cast<RankedTensorType>(op.getDestType()), sizes,
      [&](ImplicitLocOpBuilder &b, ValueRange own) {
        SmallVector<Value> indices;
        for (int64_t dim = 0; dim < rank; ++dim) {
          Value index = own[dims.getOuter(dim)];
          if (std::optional<int64_t> k = dims.getTile(dim)) {
            Value tile =
                getValueOrCreateConstantIndexOp(b, loc, dims.tiles[*k]);
            index = arith::AddIOp::create(
                b, arith::MulIOp::create(b, index, tile), own[rank + *k]);
          }
          indices.push_back(index);
        }
        return indices;
      });
  rewriter.replaceOp(op, packed);
}

void fp8::gatherUnPack(RewriterBase &rewriter, linalg::UnPackOp op) {
  Location loc = op.getLoc();
  PackedDims<linalg::UnPackOp> dims(op);
  int64_t rank = op.getDestRank();
  Value plain = gather(
      rewriter, loc, op.getSource(), cast<RankedTensorType>(op.getDestType()),
      tensor::getMixedSizes(rewriter, loc, op.getDest()),
      [&](ImplicitLocOpBuilder &b, ValueRange own) {
        SmallVector<Value> indices(op.getSourceRank());
        for (int64_t dim = 0; dim < rank; ++dim) {
          Value &outer = indices[dims.getOuter(dim)];
          outer = own[dim];
          if (std::optional<int64_t> k = dims.getTile(dim)) {
            Value tile =
                getValueOrCreateConstantIndexOp(b, loc, dims.tiles[*k]);
            outer = arith::DivUIOp::create(b, own[dim], tile);
            indices[rank + *k] = arith::RemUIOp::create(b, own[dim], tile);
          }
        }
        return indices;
      });
  rewriter.replaceOp(op, plain);
}

void fp8::gatherSlices(RewriterBase &rewriter, tensor::GatherOp op) {
  Location loc = op.getLoc();
  Value source = op.getSource(), coordinates = op.getIndices();
  ArrayRef<int64_t> gathered = op.getGatherDims();
  int64_t rank = op.getSourceType().getRank();
  int64_t batches = op.getIndicesType().getRank() - 1;
  RankedTensorType type = op.getResultType();
  // Those dimensions are dropped, or are of one element.
  bool keepsDims = type.getRank() == batches + rank;
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, coordinates);
  sizes.pop_back();
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (!llvm::is_contained(gathered, dim))
      sizes.push_back(tensor::getMixedSize(rewriter, loc, source, dim));
    else if (keepsDims)
      sizes.push_back(rewriter.getIndexAttr(1));
  }
  Value result =
      gather(rewriter, loc, source, type, sizes,
             [&](ImplicitLocOpBuilder &b, ValueRange own) {
               SmallVector<Value> place(own.take_front(batches)), indices(rank);
               for (auto [k, dim] : llvm::enumerate(gathered)) {
                 place.push_back(arith::ConstantIndexOp::create(b, k));
                 Value index = tensor::ExtractOp::create(b, coordinates, place);
                 place.pop_back();
                 if (!index.getType().isIndex())
                   index =
                       arith::IndexCastOp::create(b, b.getIndexType(), index);
                 indices[dim] = index;
               }
               for (int64_t dim = 0, next = batches; dim < rank; ++dim) {
                 if (indices[dim])
                   next += keepsDims;
                 else
                   indices[dim] = own[next++];
               }
               return indices;
             });
  rewriter.replaceOp(op, result);
}
