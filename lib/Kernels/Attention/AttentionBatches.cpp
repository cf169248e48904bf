//===- AttentionBatches.cpp - Heads of attention as batches ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBatches.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Heads as batches
//===----------------------------------------------------------------------===//

Value AttentionBatches::spread(Value tensor, bool isWhole) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t own = type.getDimSize(op.getHeadDim());
  int64_t heads = isWhole ? 1 : getHeads(op.getQ());
  bool isBSHD = op.getLayout() == AttentionLayout::BSHD;
  if (!isWhole && (isBSHD || own != heads)) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
    if (isBSHD)
      std::swap(sizes[1], sizes[2]);
    sizes[1] = b.getIndexAttr(heads);
    Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
    if (own == heads) {
      tensor = linalg::TransposeOp::create(b, loc, tensor, empty,
                                           ArrayRef<int64_t>{0, 2, 1, 3})
                   ->getResult(0);
    } else {
      AffineExpr batch, head, row, column;
      bindDims(b.getContext(), batch, head, row, column);
      AffineExpr read = head.floorDiv(heads / own);
      SmallVector<AffineExpr> from{batch, isBSHD ? row : read,
                                   isBSHD ? read : row, column};
      AffineMap identity = b.getMultiDimIdentityMap(4);
      tensor =
          linalg::GenericOp::create(
              b, loc, empty.getType(), tensor, empty,
              ArrayRef{AffineMap::get(4, 0, from, b.getContext()), identity},
              SmallVector<utils::IteratorType>(4,
                                               utils::IteratorType::parallel),
              [](OpBuilder &builder, Location loc, ValueRange elements) {
                linalg::YieldOp::create(builder, loc, elements.front());
              })
              .getResult(0);
    }
  }
  return tensor::CollapseShapeOp::create(
      b, loc, tensor, ArrayRef<ReassociationIndices>{{0, 1}, {2}, {3}});
}

Value AttentionBatches::getNumKeys() {
  Value table = op.getPageTable();
  if (!table)
    return getExtent(op.getK(), op.getSequenceDim());
  Value size = arith::ConstantIndexOp::create(b, loc, op.getPageSize());
  return b.createOrFold<arith::MulIOp>(
      loc, b.createOrFold<tensor::DimOp>(loc, table, 1), size);
}

Value AttentionBatches::gatherPages(Value pages) {
  Value table = op.getPageTable();
  auto type = cast<RankedTensorType>(pages.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, pages);
  OpFoldResult most = sizes[0];
  int64_t sequence = op.getSequenceDim();
  sizes[0] = tensor::getMixedSize(b, loc, table, 0);
  sizes[sequence] = ShapedType::isDynamic(op.getNumKeys())
                        ? OpFoldResult(getNumKeys())
                        : OpFoldResult(b.getIndexAttr(op.getNumKeys()));
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  AffineMap identity = b.getMultiDimIdentityMap(4);
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  auto gather = [&](OpBuilder &builder, Location, ValueRange) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(builder.getInsertionBlock());
    SmallVector<Value> place;
    for (int64_t dim = 0; dim < 4; ++dim)
      place.push_back(linalg::IndexOp::create(b, loc, dim));
    Value size = arith::ConstantIndexOp::create(b, loc, op.getPageSize());
    Value number = arith::DivUIOp::create(b, loc, place[sequence], size);
    Value page = arith::IndexCastOp::create(
        b, loc, b.getIndexType(),
        tensor::ExtractOp::create(b, loc, table, ValueRange{place[0], number}));
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value last = arith::SubIOp::create(
        b, loc, getValueOrCreateConstantIndexOp(b, loc, most), one);
    page = arith::MaxSIOp::create(b, loc, page,
                                  arith::ConstantIndexOp::create(b, loc, 0));
    place[0] = arith::MinSIOp::create(b, loc, page, last);
    place[sequence] = arith::RemUIOp::create(b, loc, place[sequence], size);
    linalg::YieldOp::create(
        b, loc, tensor::ExtractOp::create(b, loc, pages, place).getResult());
  };
  return linalg::GenericOp::create(b, loc, empty.getType(), ValueRange(), empty,
                                   identity, iterators, gather)
      .getResult(0);
}

Value AttentionBatches::toBatches(Value operand) {
  bool hasPages = op.getPageTable() && operand != op.getQ();
  auto gathered = [&](Value elements) {
    return hasPages ? gatherPages(elements) : elements;
  };
  auto scaled = dyn_cast<ScaledType>(operand.getType());
  if (!scaled)
    return spread(gathered(operand));
  auto parts = DisassembleOp::create(b, loc, operand);
  Value codes = spread(gathered(parts.getPayload()));
  ArrayRef<int64_t> shape = cast<RankedTensorType>(codes.getType()).getShape();
  SmallVector<int64_t> block(3, ScaledType::kWhole);
  Value factors;
  if (getPositionsOfFactor(operand)) {
    RankedTensorType one = RankedTensorType::get({1, 1, 1}, b.getF32Type());
    factors =
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(one, 1.0f));
  } else {
    factors = spread(parts.getScaleInv(), scaled.isPerTensor());
    if (!scaled.isPerTensor())
      block[0] = 1;
  }
  return AssembleOp::create(b, loc, scaled.cloneWith(shape, block), codes,
                            factors, /*tensor_scale_inv=*/Value());
}

int64_t AttentionBatches::getPositionsOfFactor(Value operand) {
  auto scaled = dyn_cast<ScaledType>(operand.getType());
  int64_t sequence = op.getSequenceDim();
  bool isInBlocks =
      scaled && !scaled.isPerTensor() && scaled.isBlocked(sequence);
  return isInBlocks ? scaled.getBlock()[sequence] : 0;
}

Value AttentionBatches::getFactorsOfPositions(Value operand) {
  return spread(DisassembleOp::create(b, loc, operand).getScaleInv());
}

Value AttentionBatches::readFactor(Value factors, int64_t positions,
                                   Value position) {
  Value size = arith::ConstantIndexOp::create(b, loc, positions);
  Value place[] = {linalg::IndexOp::create(b, loc, 0),
                   arith::DivUIOp::create(b, loc, position, size),
                   arith::ConstantIndexOp::create(b, loc, 0)};
  return tensor::ExtractOp::create(b, loc, factors, place);
}

Value AttentionBatches::fromBatches(Value tensor) {
  RankedTensorType type = op.getOutput().getType();
  int64_t heads = getHeads(op.getQ());
  bool isBSHD = op.getLayout() == AttentionLayout::BSHD;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  sizes.insert(sizes.begin() + 1, b.getIndexAttr(heads));
  sizes[0] = getAsOpFoldResult(getExtent(op.getQ(), 0));
  SmallVector<int64_t> shape(type.getShape());
  if (isBSHD)
    std::swap(shape[1], shape[2]);
  auto expanded = RankedTensorType::get(shape, type.getElementType());
  for (auto [size, extent] : llvm::zip_equal(sizes, shape))
    if (!ShapedType::isDynamic(extent))
      size = b.getIndexAttr(extent);
  SmallVector<int64_t> batches(
      cast<RankedTensorType>(tensor.getType()).getShape());
  batches[1] = shape[2];
  batches[2] = shape[3];
  tensor = b.createOrFold<tensor::CastOp>(
      loc, RankedTensorType::get(batches, type.getElementType()), tensor);
  tensor = tensor::ExpandShapeOp::create(
      b, loc, expanded, tensor,
      ArrayRef<ReassociationIndices>{{0, 1}, {2}, {3}}, sizes);
  if (!isBSHD)
    return tensor;
  std::swap(sizes[1], sizes[2]);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  return linalg::TransposeOp::create(b, loc, tensor, empty,
                                     ArrayRef<int64_t>{0, 2, 1, 3})
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value AttentionBatches::map(ValueRange sources, Type element, Body body) {
  Value first = sources.front();
  int64_t rank = cast<RankedTensorType>(first.getType()).getRank();
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, first), element);
  SmallVector<AffineMap> maps;
  for (Value source : sources)
    maps.push_back(b.getMultiDimIdentityMap(rank).getMajorSubMap(
        cast<RankedTensorType>(source.getType()).getRank()));
  maps.push_back(b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, empty.getType(), sources, empty, maps, iterators,
             [&](OpBuilder &builder, Location, ValueRange elements) {
               OpBuilder::InsertionGuard guard(b);
               b.setInsertionPointToEnd(builder.getInsertionBlock());
               linalg::YieldOp::create(b, loc, body(elements.drop_back()));
             })
      .getResult(0);
}

Value AttentionBatches::reduce(
    Value source, float neutral,
    llvm::function_ref<Value(Value, Value)> combine) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
  sizes.pop_back();
  Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  Value init = linalg::FillOp::create(b, loc, f32(neutral), empty).getResult(0);
  return linalg::ReduceOp::create(
             b, loc, source, init, ArrayRef<int64_t>{2},
             [&](OpBuilder &builder, Location, ValueRange elements) {
               OpBuilder::InsertionGuard guard(b);
               b.setInsertionPointToEnd(builder.getInsertionBlock());
               linalg::YieldOp::create(b, loc,
                                       combine(elements[0], elements[1]));
             })
      ->getResult(0);
}

Value AttentionBatches::getBatch() {
  Value heads = arith::ConstantIndexOp::create(b, loc, getHeads(op.getQ()));
  return arith::DivUIOp::create(b, loc, linalg::IndexOp::create(b, loc, 0),
                                heads);
}

Value AttentionBatches::getHead() {
  Value heads = arith::ConstantIndexOp::create(b, loc, getHeads(op.getQ()));
  return arith::RemUIOp::create(b, loc, linalg::IndexOp::create(b, loc, 0),
                                heads);
}
