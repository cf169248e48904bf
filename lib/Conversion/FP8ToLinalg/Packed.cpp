//===- Packed.cpp - Codes that share bytes --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static constexpr int64_t kCodeBits = 4;

static bool isEven(int64_t size) {
  return ShapedType::isDynamic(size) || size % kCodesOfByte == 0;
}

Value fp8::joinCodes(OpBuilder &builder, Location loc, Value low, Value high) {
  ImplicitLocOpBuilder b(loc, builder);
  Value bits = arith::ConstantOp::create(b, b.getI8IntegerAttr(kCodeBits));
  return arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, bits));
}

Value fp8::selectCode(OpBuilder &builder, Location loc, Value byte,
                      Value half) {
  ImplicitLocOpBuilder b(loc, builder);
  Value bits = arith::ConstantOp::create(b, b.getI8IntegerAttr(kCodeBits));
  Value place = arith::MulIOp::create(
      b, arith::IndexCastUIOp::create(b, b.getI8Type(), half), bits);
  Value shifted = arith::ShRUIOp::create(b, byte, place);
  return arith::AndIOp::create(
      b, shifted, arith::ConstantOp::create(b, b.getI8IntegerAttr(15)));
}

bool fp8::keepsRows(TransposeOp op) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  return permutation.empty() ||
         permutation.back() == static_cast<int64_t>(permutation.size()) - 1;
}

bool fp8::staysInPlace(Value codes) {
  return llvm::all_of(codes.getUsers(), [](Operation *user) {
    // Rows of another dimension are codes that are put together again.
    if (auto transpose = dyn_cast<TransposeOp>(user))
      return !keepsRows(transpose) || staysInPlace(transpose.getResult());
    if (isa<AssembleOp>(user))
      return staysInPlace(user->getResult(0));
    // As fusions, whose bodies are in their places by now, take and give them.
    if (auto disassemble = dyn_cast<DisassembleOp>(user))
      return staysInPlace(disassemble.getPayload());
    return isa<MatmulOp, DequantizeOp, MeasureOp>(user);
  });
}

SmallVector<OpFoldResult> fp8::getSizes(OpBuilder &b, Location loc,
                                        Value stored, RankedTensorType type,
                                        const Payloads *payloads) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(b.getIndexAttr(size));
      continue;
    }
    bool isRow = isPacked(type) && dim + 1 == type.getShape().size();
    if (OpFoldResult size =
            isRow && payloads ? payloads->rowSizes.lookup(stored) : nullptr) {
      sizes.push_back(size);
      continue;
    }
    sizes.push_back(tensor::getMixedSize(b, loc, stored, dim));
    if (isRow)
      sizes.back() = affine::makeComposedFoldedAffineApply(
          b, loc, b.getAffineSymbolExpr(0) * kCodesOfByte, {sizes.back()});
  }
  return sizes;
}

/// Sizes with a last one of two codes for each byte, and how they came to be.
static SmallVector<ReassociationIndices>
splitPairs(OpBuilder &b, Location loc, SmallVectorImpl<OpFoldResult> &sizes) {
  SmallVector<ReassociationIndices> groups;
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    groups.push_back({static_cast<int64_t>(dim)});
  groups.back().push_back(static_cast<int64_t>(sizes.size()));
  sizes.back() = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineSymbolExpr(0).ceilDiv(kCodesOfByte), {sizes.back()});
  sizes.push_back(b.getIndexAttr(kCodesOfByte));
  return groups;
}

static SmallVector<int64_t> getShape(ArrayRef<OpFoldResult> sizes) {
  return llvm::map_to_vector(sizes, [](OpFoldResult size) {
    return getConstantIntValue(size).value_or(ShapedType::kDynamic);
  });
}

static SmallVector<utils::IteratorType> getParallel(int64_t rank) {
  return SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel);
}

Value fp8::unpackCodes(OpBuilder &b, Location loc, Value stored,
                       RankedTensorType type, const Payloads *payloads) {
  int64_t rank = type.getRank();
  if (rank == 0)
    return stored;
  SmallVector<OpFoldResult> sizes = getSizes(b, loc, stored, type, payloads),
                            pairs = sizes;
  SmallVector<ReassociationIndices> groups = splitPairs(b, loc, pairs);
  Value empty = tensor::EmptyOp::create(b, loc, pairs, b.getI8Type());
  AffineMap map = b.getMultiDimIdentityMap(rank + 1);
  auto codes = linalg::GenericOp::create(
      b, loc, empty.getType(), stored, empty,
      ArrayRef{map.dropResult(rank), map}, getParallel(rank + 1),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value half = linalg::IndexOp::create(b, loc, rank);
        linalg::YieldOp::create(b, loc, selectCode(b, loc, args[0], half));
      });
  SmallVector<int64_t> shape(type.getShape());
  bool isWhole = isEven(shape.back()) &&
                 !(payloads && payloads->rowSizes.contains(stored));
  if (!ShapedType::isDynamic(shape.back()))
    shape.back() = llvm::alignTo(shape.back(), kCodesOfByte);
  Value rows = tensor::CollapseShapeOp::create(
      b, loc, RankedTensorType::get(shape, b.getI8Type()), codes.getResult(0),
      groups);
  if (isWhole)
    return rows;
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0)),
      strides(rank, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, rows, offsets, sizes, strides);
}

/// A check of a last size that is only known at run time: it has to be even.
static void checkPairs(OpBuilder &b, Location loc,
                       ArrayRef<OpFoldResult> sizes) {
  auto size = dyn_cast<Value>(sizes.back());
  if (!size)
    return;
  Value two = arith::ConstantIndexOp::create(b, loc, kCodesOfByte);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value rest = arith::RemUIOp::create(b, loc, size, two);
  cf::AssertOp::create(
      b, loc,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, zero),
      "expected a last dimension of an even size, of which two codes of "
      "f4E2M1FN share a byte, but got an odd one");
}

Value fp8::packCodes(OpBuilder &b, Location loc, Value codes,
                     Payloads *payloads) {
  auto type = cast<RankedTensorType>(codes.getType());
  int64_t rank = type.getRank();
  if (rank == 0)
    return codes;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, codes),
                            pairs = sizes;
  SmallVector<int64_t> shape(type.getShape());
  bool isDynamic = ShapedType::isDynamic(shape.back());
  if (isDynamic && !payloads)
    checkPairs(b, loc, sizes);
  if (!isEven(shape.back()) || (isDynamic && payloads)) {
    if (!isDynamic)
      ++shape.back();
    SmallVector<OpFoldResult> low(rank, b.getIndexAttr(0)), high(low);
    AffineExpr size = b.getAffineSymbolExpr(0);
    high.back() = affine::makeComposedFoldedAffineApply(
        b, loc, size % kCodesOfByte, {sizes.back()});
    Value zero = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
    codes = tensor::PadOp::create(b, loc, type.clone(shape), codes, low, high,
                                  zero);
  }
  SmallVector<ReassociationIndices> groups = splitPairs(b, loc, pairs);
  codes = tensor::ExpandShapeOp::create(b, loc, type.clone(getShape(pairs)),
                                        codes, groups, pairs);
  AffineMap map = b.getMultiDimIdentityMap(rank);
  auto getHalf = [&](int64_t half) {
    SmallVector<AffineExpr> places(map.getResults());
    places.push_back(b.getAffineConstantExpr(half));
    return AffineMap::get(rank, 0, places, b.getContext());
  };
  pairs.pop_back();
  Value empty = tensor::EmptyOp::create(b, loc, pairs, b.getI8Type());
  auto generic = linalg::GenericOp::create(
      b, loc, empty.getType(), ValueRange{codes, codes}, empty,
      ArrayRef{getHalf(0), getHalf(1), map}, getParallel(rank),
      [](OpBuilder &b, Location loc, ValueRange args) {
        linalg::YieldOp::create(b, loc, joinCodes(b, loc, args[0], args[1]));
      });
  Value bytes = generic.getResult(0);
  if (isDynamic && payloads)
    payloads->rowSizes[bytes] = sizes.back();
  return bytes;
}
