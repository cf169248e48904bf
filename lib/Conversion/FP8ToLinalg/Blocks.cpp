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
    : builder(builder), loc(loc), block(blockExtents) {
  sizes = tensor::getMixedSizes(builder, loc, tensor);
  AffineExpr size = builder.getAffineSymbolExpr(0);
  for (auto [dim, extent] : llvm::enumerate(block)) {
    if (!isSplit(extent)) {
      paddedSizes.push_back(sizes[dim]);
      reassociation.push_back({static_cast<int64_t>(loopSizes.size())});
      loopSizes.push_back(sizes[dim]);
      continue;
    }
    OpFoldResult grid = affine::makeComposedFoldedAffineApply(
        builder, loc, size.ceilDiv(extent), {sizes[dim]});
    paddedSizes.push_back(affine::makeComposedFoldedAffineApply(
        builder, loc, size.ceilDiv(extent) * extent, {sizes[dim]}));
    int64_t loop = loopSizes.size();
    reassociation.push_back({loop, loop + 1});
    loopSizes.push_back(grid);
    loopSizes.push_back(builder.getIndexAttr(extent));
  }
  shape = getStaticShape(sizes);
  paddedShape = getStaticShape(paddedSizes);
  loopShape = getStaticShape(loopSizes);
}

Value BlockedNest::split(Value tensor) const {
  auto type = cast<RankedTensorType>(tensor.getType());
  // Dynamic extents are padded too: whether by nothing shows at run time.
  if (shape != paddedShape ||
      llvm::any_of(llvm::zip_equal(shape, block), [](auto pair) {
        auto [dim, extent] = pair;
        return ShapedType::isDynamic(dim) && isSplit(extent);
      })) {
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
  // No slice of no elements is inside of a tensor.
  if (llvm::is_contained(shape, 0))
    return tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  if (loopShape.size() != shape.size())
    tensor = tensor::CollapseShapeOp::create(
        builder, loc, type.clone(paddedShape), tensor, reassociation);
  bool isPadded = false;
  for (auto [dim, paddedDim, extent] :
       llvm::zip_equal(shape, paddedShape, block))
    isPadded |=
        dim != paddedDim || (ShapedType::isDynamic(dim) && isSplit(extent));
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
  for (auto [dim, extent] : llvm::enumerate(block))
    exprs.push_back(extent == ScaledType::kWhole
                        ? builder.getAffineConstantExpr(0)
                        : builder.getAffineDimExpr(reassociation[dim].front()));
  return AffineMap::get(getNumLoops(), 0, exprs, builder.getContext());
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
