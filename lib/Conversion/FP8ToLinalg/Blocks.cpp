//===- Blocks.cpp - Tensors cut into blocks -------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "fp8/IR/FP8Types.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::fp8;

static bool isSplit(int64_t extent) {
  return extent != ScaledType::kWhole && extent != 1;
}

static SmallVector<int64_t> getStaticShape(ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return shape;
}

BlockedNest::BlockedNest(OpBuilder &builder, Location loc, Value tensor,
                         ArrayRef<int64_t> blockExtents)
    : BlockedNest(builder, loc, tensor::getMixedSizes(builder, loc, tensor),
                  blockExtents, /*groupSize=*/1) {}

BlockedNest::BlockedNest(OpBuilder &builder, Location loc,
                         ArrayRef<OpFoldResult> tensorSizes,
                         ArrayRef<int64_t> blockExtents, int64_t groupSize)
    : builder(builder), loc(loc), block(blockExtents), groupSize(groupSize),
      sizes(tensorSizes) {
  AffineExpr size = builder.getAffineSymbolExpr(0);
  for (auto [dim, extent] : llvm::enumerate(block)) {
    SmallVector<int64_t, 2> loops;
    auto addLoop = [&](OpFoldResult loopSize) {
      loops.push_back(getNumLoops());
      loopSizes.push_back(loopSize);
    };
    OpFoldResult within = sizes[dim], padded = sizes[dim];
    if (isSplit(extent)) {
      addLoop(affine::makeComposedFoldedAffineApply(
          builder, loc, size.ceilDiv(extent), {sizes[dim]}));
      within = builder.getIndexAttr(extent);
      padded = affine::makeComposedFoldedAffineApply(
          builder, loc, size.ceilDiv(extent) * extent, {sizes[dim]});
      // Dynamic extents are padded too: whether by nothing shows at run time.
      isPadded |= !getConstantIntValue(sizes[dim]) || padded != sizes[dim];
    }
    paddedSizes.push_back(padded);
    if (isInGroups() && dim + 1 == block.size()) {
      addLoop(affine::makeComposedFoldedAffineApply(
          builder, loc, size.floorDiv(groupSize), {within}));
      within = builder.getIndexAttr(groupSize);
    }
    addLoop(within);
    reassociation.push_back(loops);
  }
  finish();
}

void BlockedNest::finish() {
  shape = getStaticShape(sizes);
  paddedShape = getStaticShape(paddedSizes);
  loopShape = getStaticShape(loopSizes);
}

BlockedNest BlockedNest::getBytes() const {
  BlockedNest bytes(*this);
  bytes.groupSize = 1;
  AffineExpr size = builder.getAffineSymbolExpr(0);
  for (auto *extents : {&bytes.sizes, &bytes.paddedSizes})
    extents->back() = affine::makeComposedFoldedAffineApply(
        builder, loc, size.floorDiv(groupSize), {extents->back()});
  bytes.loopSizes.pop_back();
  bytes.reassociation.back().pop_back();
  bytes.finish();
  return bytes;
}

Value BlockedNest::split(Value tensor) const {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (isPadded) {
    AffineExpr padded = builder.getAffineSymbolExpr(0);
    AffineExpr size = builder.getAffineSymbolExpr(1);
    SmallVector<OpFoldResult> low(sizes.size(), builder.getIndexAttr(0)), high;
    for (auto [paddedSize, dimSize] : llvm::zip_equal(paddedSizes, sizes))
      high.push_back(affine::makeComposedFoldedAffineApply(
          builder, loc, padded - size, {paddedSize, dimSize}));
    Value zero = arith::ConstantOp::create(
        builder, loc, builder.getZeroAttr(type.getElementType()));
    type = type.clone(paddedShape);
    tensor = tensor::PadOp::create(builder, loc, type, tensor, low, high, zero);
  }
  if (loopShape.size() == shape.size())
    return tensor;
  return tensor::ExpandShapeOp::create(builder, loc, type.clone(loopShape),
                                       tensor, reassociation, loopSizes);
}

Value BlockedNest::join(Value tensor) const {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (llvm::is_contained(shape, 0))
    return tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  if (loopShape.size() != shape.size())
    tensor = tensor::CollapseShapeOp::create(
        builder, loc, type.clone(paddedShape), tensor, reassociation);
  if (!isPadded)
    return tensor;
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, loc, type.clone(shape), tensor,
                                        offsets, sizes, strides);
}

Value BlockedNest::createEmpty(Type elementType) const {
  return tensor::EmptyOp::create(builder, loc, loopSizes, elementType);
}

Value BlockedNest::createEmptyGrid(Type elementType) const {
  SmallVector<OpFoldResult> gridSizes;
  for (auto [dim, extent] : llvm::enumerate(block))
    gridSizes.push_back(extent == ScaledType::kWhole
                            ? OpFoldResult(builder.getIndexAttr(1))
                            : loopSizes[reassociation[dim].front()]);
  return tensor::EmptyOp::create(builder, loc, gridSizes, elementType);
}

AffineMap BlockedNest::getElementMap() const {
  return builder.getMultiDimIdentityMap(getNumLoops());
}

AffineMap BlockedNest::getGridMap() const {
  SmallVector<AffineExpr> exprs;
  for (auto [dim, extent] : llvm::enumerate(block)) {
    ArrayRef<int64_t> loops = reassociation[dim];
    AffineExpr place = builder.getAffineDimExpr(loops.front());
    if (extent == ScaledType::kWhole)
      place = builder.getAffineConstantExpr(0);
    else if (isInGroups() && !isSplit(extent) && dim + 1 == block.size())
      place = place * groupSize + builder.getAffineDimExpr(loops.back());
    exprs.push_back(place);
  }
  return AffineMap::get(getNumLoops(), 0, exprs, builder.getContext());
}

AffineMap BlockedNest::getByteMap() const {
  return getElementMap().dropResult(getNumLoops() - 1);
}

SmallVector<Value> BlockedNest::getIndices(OpBuilder &body) const {
  SmallVector<Value> indices;
  for (auto [dim, extent] : llvm::enumerate(block)) {
    ArrayRef<int64_t> loops = reassociation[dim];
    Value index = linalg::IndexOp::create(body, loc, loops.front());
    if (loops.size() > 1) {
      Value size = arith::ConstantIndexOp::create(body, loc, extent);
      index = arith::MulIOp::create(body, loc, index, size);
      index = arith::AddIOp::create(
          body, loc, index, linalg::IndexOp::create(body, loc, loops.back()));
    }
    indices.push_back(index);
  }
  return indices;
}

SmallVector<bool> BlockedNest::getWithinBlock() const {
  SmallVector<bool> within(getNumLoops(), false);
  for (auto [dim, extent] : llvm::enumerate(block)) {
    if (extent == ScaledType::kWhole)
      within[reassociation[dim].front()] = true;
    else if (isSplit(extent))
      within[reassociation[dim].back()] = true;
  }
  return within;
}

Value fp8::createSlice(OpBuilder &builder, Location loc, RankedTensorType type,
                       Value tensor, ArrayRef<OpFoldResult> offsets,
                       ArrayRef<OpFoldResult> sizes) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  if (!llvm::is_contained(shape, 0)) {
    SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(builder, loc, type, tensor, offsets,
                                          sizes, strides);
  }
  SmallVector<int64_t> full = getStaticShape(sizes);
  auto dropped = computeRankReductionMask(full, type.getShape());
  SmallVector<OpFoldResult> kept;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (!dropped || !dropped->contains(dim))
      kept.push_back(size);
  return tensor::EmptyOp::create(builder, loc, kept, type.getElementType());
}
