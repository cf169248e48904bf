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
using fp8rt::CodePacking;

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// Values of `bits` bits each beside each other in one of `type`, the first in
/// the lowest.
static Value join(ImplicitLocOpBuilder &b, Type type, int64_t bits,
                  ValueRange values) {
  auto widen = [&](Value value) -> Value {
    if (value.getType() == type)
      return value;
    return arith::ExtUIOp::create(b, type, value);
  };
  Value joined = widen(values.front());
  for (auto [i, value] : llvm::enumerate(values.drop_front())) {
    Value place = arith::ConstantOp::create(
        b, b.getIntegerAttr(type, bits * static_cast<int64_t>(i + 1)));
    joined = arith::OrIOp::create(
        b, joined, arith::ShLIOp::create(b, widen(value), place));
  }
  return joined;
}

Value fp8::joinCodes(OpBuilder &builder, Location loc, CodePacking packing,
                     ValueRange codes) {
  ImplicitLocOpBuilder b(loc, builder);
  return join(b, b.getIntegerType(8 * packing.getBytes()), packing.bits, codes);
}

Value fp8::joinBytes(OpBuilder &builder, Location loc, ValueRange bytes) {
  ImplicitLocOpBuilder b(loc, builder);
  return join(b, b.getIntegerType(8 * bytes.size()), 8, bytes);
}

Value fp8::selectCode(OpBuilder &builder, Location loc, CodePacking packing,
                      Value group, Value place) {
  ImplicitLocOpBuilder b(loc, builder);
  Type type = group.getType();
  Value bits =
      arith::ConstantOp::create(b, b.getIntegerAttr(type, packing.bits));
  place = arith::MulIOp::create(b, arith::IndexCastUIOp::create(b, type, place),
                                bits);
  Value shifted = arith::ShRUIOp::create(b, group, place);
  auto mask = static_cast<int64_t>(packing.getMask());
  Value code = arith::AndIOp::create(
      b, shifted, arith::ConstantOp::create(b, b.getIntegerAttr(type, mask)));
  if (type.isInteger(8))
    return code;
  return arith::TruncIOp::create(b, b.getI8Type(), code);
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
          b, loc, getCodesOf(getPacking(type), b.getAffineSymbolExpr(0)),
          {sizes.back()});
  }
  return sizes;
}

/// Sizes with a last one of the codes, or of the bytes, of each group, and how
/// they came to be.
static SmallVector<ReassociationIndices>
splitGroups(OpBuilder &b, Location loc, int64_t groupSize,
            SmallVectorImpl<OpFoldResult> &sizes) {
  SmallVector<ReassociationIndices> groups;
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    groups.push_back({static_cast<int64_t>(dim)});
  groups.back().push_back(static_cast<int64_t>(sizes.size()));
  sizes.back() = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineSymbolExpr(0).ceilDiv(groupSize), {sizes.back()});
  sizes.push_back(b.getIndexAttr(groupSize));
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

/// One index of the last of `rank` + 1 dimensions, for each of `count`.
static SmallVector<AffineMap> getPlaceMaps(OpBuilder &b, int64_t rank,
                                           int64_t loops, int64_t count) {
  SmallVector<AffineMap> maps;
  for (int64_t place = 0; place < count; ++place) {
    SmallVector<AffineExpr> exprs;
    for (int64_t dim = 0; dim < rank; ++dim)
      exprs.push_back(b.getAffineDimExpr(dim));
    exprs.push_back(b.getAffineConstantExpr(place));
    maps.push_back(AffineMap::get(loops, 0, exprs, b.getContext()));
  }
  return maps;
}

Value fp8::unpackCodes(OpBuilder &b, Location loc, Value stored,
                       RankedTensorType type, const Payloads *payloads) {
  int64_t rank = type.getRank();
  if (rank == 0)
    return stored;
  CodePacking packing = getPacking(type);
  SmallVector<OpFoldResult> sizes = getSizes(b, loc, stored, type, payloads),
                            groupSizes = sizes;
  SmallVector<ReassociationIndices> groups =
      splitGroups(b, loc, packing.getCodes(), groupSizes);
  Value empty = tensor::EmptyOp::create(b, loc, groupSizes, b.getI8Type());
  AffineMap map = b.getMultiDimIdentityMap(rank + 1);
  // Where a group is a byte it is read as it lies, else byte by byte.
  Value source = stored;
  SmallVector<AffineMap> maps{map.dropResult(rank)};
  if (packing.getBytes() > 1) {
    SmallVector<OpFoldResult> byteSizes = tensor::getMixedSizes(b, loc, stored);
    splitGroups(b, loc, packing.getBytes(), byteSizes);
    auto split = RankedTensorType::get(getShape(byteSizes), b.getI8Type());
    source =
        tensor::ExpandShapeOp::create(b, loc, split, stored, groups, byteSizes);
    maps = getPlaceMaps(b, rank, rank + 1, packing.getBytes());
  }
  SmallVector<Value> inputs(maps.size(), source);
  maps.push_back(map);
  auto codes = linalg::GenericOp::create(
      b, loc, empty.getType(), inputs, empty, maps, getParallel(rank + 1),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value place = linalg::IndexOp::create(b, loc, rank);
        Value group = joinBytes(b, loc, args.drop_back());
        linalg::YieldOp::create(b, loc,
                                selectCode(b, loc, packing, group, place));
      });
  SmallVector<int64_t> shape(type.getShape());
  bool hasWholeGroups = isWhole(packing, shape.back()) &&
                        !(payloads && payloads->rowSizes.contains(stored));
  if (!ShapedType::isDynamic(shape.back()))
    shape.back() = llvm::alignTo(shape.back(), packing.getCodes());
  Value rows = tensor::CollapseShapeOp::create(
      b, loc, RankedTensorType::get(shape, b.getI8Type()), codes.getResult(0),
      groups);
  if (hasWholeGroups)
    return rows;
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0)),
      strides(rank, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, rows, offsets, sizes, strides);
}

/// The bytes of codes whose last dimension is that of a group's.
static Value joinGroups(OpBuilder &b, Location loc, CodePacking packing,
                        Value codes, ArrayRef<OpFoldResult> groupSizes,
                        ArrayRef<ReassociationIndices> groups) {
  auto rank = static_cast<int64_t>(groupSizes.size()) - 1;
  bool isOfBytes = packing.getBytes() == 1;
  int64_t loops = isOfBytes ? rank : rank + 1;
  SmallVector<AffineMap> maps =
      getPlaceMaps(b, rank, loops, packing.getCodes());
  SmallVector<Value> inputs(maps.size(), codes);
  maps.push_back(b.getMultiDimIdentityMap(loops));
  SmallVector<OpFoldResult> byteSizes(groupSizes.drop_back());
  if (!isOfBytes)
    byteSizes.push_back(b.getIndexAttr(packing.getBytes()));
  Value empty = tensor::EmptyOp::create(b, loc, byteSizes, b.getI8Type());
  auto generic = linalg::GenericOp::create(
      b, loc, empty.getType(), inputs, empty, maps, getParallel(loops),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value group = joinCodes(b, loc, packing, args.drop_back());
        if (!isOfBytes)
          group = selectCode(b, loc, CodePacking(), group,
                             linalg::IndexOp::create(b, loc, rank));
        linalg::YieldOp::create(b, loc, group);
      });
  Value bytes = generic.getResult(0);
  if (isOfBytes)
    return bytes;
  SmallVector<int64_t> shape = getShape(byteSizes);
  int64_t &last = shape[rank - 1];
  if (!ShapedType::isDynamic(last))
    last *= packing.getBytes();
  shape.pop_back();
  return tensor::CollapseShapeOp::create(
      b, loc, RankedTensorType::get(shape, b.getI8Type()), bytes, groups);
}

/// A check of a last size that is only known at run time: whole groups.
static void checkGroups(OpBuilder &b, Location loc, Type type,
                        ArrayRef<OpFoldResult> sizes) {
  auto size = dyn_cast<Value>(sizes.back());
  if (!size)
    return;
  Value groupSize =
      arith::ConstantIndexOp::create(b, loc, getPacking(type).getCodes());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value rest = arith::RemUIOp::create(b, loc, size, groupSize);
  cf::AssertOp::create(
      b, loc,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, zero),
      "expected a last dimension of " + describeGroups(type) + ", but got " +
          (getPacking(type).getCodes() == 2 ? "an odd one" : "another"));
}

Value fp8::packCodes(OpBuilder &b, Location loc, Type elementType, Value codes,
                     Payloads *payloads) {
  auto type = cast<RankedTensorType>(codes.getType());
  int64_t rank = type.getRank();
  if (rank == 0)
    return codes;
  CodePacking packing = getPacking(elementType);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, codes),
                            groupSizes = sizes;
  SmallVector<int64_t> shape(type.getShape());
  bool isDynamic = ShapedType::isDynamic(shape.back());
  if (isDynamic && !payloads)
    checkGroups(b, loc, elementType, sizes);
  if (!isWhole(packing, shape.back()) || (isDynamic && payloads)) {
    if (!isDynamic)
      shape.back() = llvm::alignTo(shape.back(), packing.getCodes());
    SmallVector<OpFoldResult> low(rank, b.getIndexAttr(0)), high(low);
    AffineExpr size = b.getAffineSymbolExpr(0);
    // What is missing of two codes is what is left.
    AffineExpr missing =
        packing.getCodes() == 2
            ? size % 2
            : size.ceilDiv(packing.getCodes()) * packing.getCodes() - size;
    high.back() =
        affine::makeComposedFoldedAffineApply(b, loc, missing, {sizes.back()});
    Value zero = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
    codes = tensor::PadOp::create(b, loc, type.clone(shape), codes, low, high,
                                  zero);
  }
  SmallVector<ReassociationIndices> groups =
      splitGroups(b, loc, packing.getCodes(), groupSizes);
  codes = tensor::ExpandShapeOp::create(
      b, loc, type.clone(getShape(groupSizes)), codes, groups, groupSizes);
  Value bytes = joinGroups(b, loc, packing, codes, groupSizes, groups);
  if (isDynamic && payloads)
    payloads->rowSizes[bytes] = sizes.back();
  return bytes;
}
