//===- GroupedMatmul.cpp - grouped_matmul ---------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "FP8ToLinalg.h"
#include "fp8/IR/TensorCoreAccumulation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// A part of one dimension.
struct Part {
  int64_t dim;
  OpFoldResult offset, size;
};

/// A loop over the groups, each an `fp8.matmul` of slices: its bits are those
/// of the product by itself.
class GroupedMatmulExpander {
public:
  GroupedMatmulExpander(RewriterBase &b, GroupedMatmulOp op)
      : b(b), op(op), loc(op.getLoc()) {}

  void expand();

private:
  /// A tensor of the operand's shape.
  Value getElements(Value operand);
  /// Which dimension of A is that of the tokens.
  int64_t getTokenDim();
  Value buildSlice(Value tensor, Part range, bool dropsDim);
  /// Codes and factors of the range, or elements. `dropsDim`: of one index,
  /// without the dimension. `blockK`: with what begins the range's first block.
  Value sliceOperand(Value operand, Part range, bool dropsDim,
                     int64_t blockK = 1);
  /// The blocks of `extent` elements in the last `elements` up to the end
  /// of the range: their first one begins there.
  Part getBlocks(Part range, int64_t extent, OpFoldResult elements);
  /// Whether slices of K of the codes are values, for these sums.
  bool canSliceK(const std::optional<TensorCoreAccumulation> &sums);
  /// Where factors change along the range: what the product is made from.
  Value widen(Value operand);
  /// `rank` is that of the result, of which the range is.
  Value sliceEpilogueOperand(Value operand, Part range, int64_t rank,
                             bool dropsDim);
  /// A slice of K, behind as many zeros as a kernel's first block has elements
  /// of other groups: its sums begin with that block. Nothing has no block.
  Value beginBlock(Value slice, Part range, int64_t blockK);
  Value buildNumGroups();
  Value buildInit();
  /// Offset, or count, `number` (index).
  Value loadBound(Value number);
  /// What group `group` is of the tokens. A slice that is not there would be
  /// anybody's memory: the program ends if the bounds say so.
  Part buildTokens(Value group);
  Value buildGroup(Value group, Part tokens);

  RewriterBase &b;
  GroupedMatmulOp op;
  Location loc;
  /// A and B, in high precision where no slice of their codes is a value.
  Value lhs, rhs;
};
} // namespace

Value GroupedMatmulExpander::getElements(Value operand) {
  if (!isa<ScaledType>(operand.getType()))
    return operand;
  return DisassembleOp::create(b, loc, operand).getPayload();
}

int64_t GroupedMatmulExpander::getTokenDim() {
  int64_t rank = op.getShapeOfA().size();
  return op.sumsGroups() != op.getTransposeA() ? rank - 1 : rank - 2;
}

Value GroupedMatmulExpander::buildSlice(Value tensor, Part range,
                                        bool dropsDim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  offsets[range.dim] = range.offset;
  sizes[range.dim] = range.size;
  RankedTensorType full = tensor::ExtractSliceOp::inferResultType(type, sizes);
  SmallVector<int64_t> shape(full.getShape());
  if (dropsDim)
    shape.erase(shape.begin() + range.dim);
  return createSlice(b, loc, full.clone(shape), tensor, offsets, sizes);
}

Part GroupedMatmulExpander::getBlocks(Part range, int64_t extent,
                                      OpFoldResult elements) {
  if (extent == 1)
    return range;
  auto getIndex = [&](OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, loc, value);
  };
  Value block = arith::ConstantIndexOp::create(b, loc, extent);
  Value size = getIndex(elements);
  Value end = b.createOrFold<arith::AddIOp>(loc, getIndex(range.offset),
                                            getIndex(range.size));
  Value first = b.createOrFold<arith::SubIOp>(loc, end, size);
  return {range.dim, b.createOrFold<arith::DivUIOp>(loc, first, block),
          b.createOrFold<arith::CeilDivUIOp>(loc, size, block)};
}

Value GroupedMatmulExpander::sliceOperand(Value operand, Part range,
                                          bool dropsDim, int64_t blockK) {
  auto type = dyn_cast<ScaledType>(operand.getType());
  Value payload = buildSlice(getElements(operand), range, dropsDim);
  OpFoldResult size = range.size;
  if (blockK > 1) {
    payload = beginBlock(payload, range, blockK);
    size = tensor::getMixedSize(b, loc, payload, range.dim);
  }
  if (!type)
    return payload;
  auto parts = DisassembleOp::create(b, loc, operand);
  // A dimension that shares its factor has one index.
  Part one{range.dim, b.getIndexAttr(0), b.getIndexAttr(1)};
  Part ofFactors = type.isBlocked(range.dim)
                       ? getBlocks(range, type.getBlock()[range.dim], size)
                       : one;
  auto slice = [&](Value factors, Part range) {
    return buildSlice(factors, range, dropsDim);
  };
  Value scaleInv = slice(parts.getScaleInv(), ofFactors);
  Value tensorScaleInv = parts.getTensorScaleInv();
  if (tensorScaleInv)
    tensorScaleInv = slice(tensorScaleInv, one);
  SmallVector<int64_t> block(type.getBlock());
  if (dropsDim)
    block.erase(block.begin() + range.dim);
  ScaledType sliced = type.cloneWith(
      cast<RankedTensorType>(payload.getType()).getShape(), block);
  return AssembleOp::create(b, loc, sliced, payload, scaleInv, tensorScaleInv);
}

bool GroupedMatmulExpander::canSliceK(
    const std::optional<TensorCoreAccumulation> &sums) {
  ScaledType a = op.getScaledA();
  int64_t dim = a.getRank() - 1;
  if (!a.isBlocked(dim))
    return true;
  // A kernel's factors multiply the sums of blocks. Without one that is known
  // they may change inside of any block of a slice; half a byte has no slice.
  return sums && a.getElementType().getIntOrFloatBitWidth() == 8 &&
         op.getScaledB().getElementType().getIntOrFloatBitWidth() == 8 &&
         sums->blockK % a.getBlock()[dim] == 0;
}

Value GroupedMatmulExpander::widen(Value operand) {
  auto type = cast<ScaledType>(operand.getType());
  return DequantizeOp::create(
      b, loc, RankedTensorType::get(type.getShape(), b.getF32Type()), operand);
}

Value GroupedMatmulExpander::sliceEpilogueOperand(Value operand, Part range,
                                                  int64_t rank, bool dropsDim) {
  auto type = cast<RankedTensorType>(operand.getType());
  range.dim -= rank - type.getRank();
  if (range.dim < 0)
    return operand;
  if (type.getDimSize(range.dim) == 1) {
    if (!dropsDim)
      return operand;
    range.offset = b.getIndexAttr(0);
  }
  return buildSlice(operand, range, dropsDim);
}

Value GroupedMatmulExpander::beginBlock(Value slice, Part range,
                                        int64_t blockK) {
  auto type = cast<RankedTensorType>(slice.getType());
  auto getIndex = [&](OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, loc, value);
  };
  Value block = arith::ConstantIndexOp::create(b, loc, blockK);
  Value zeroIndex = arith::ConstantIndexOp::create(b, loc, 0);
  Value isEmpty = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        getIndex(range.size), zeroIndex);
  Value others = arith::SelectOp::create(
      b, loc, isEmpty, zeroIndex,
      arith::RemUIOp::create(b, loc, getIndex(range.offset), block));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, slice);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> whole(sizes);
  whole[range.dim] =
      arith::AddIOp::create(b, loc, getIndex(sizes[range.dim]), others)
          .getResult();
  offsets[range.dim] = others;
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(b, loc, whole, type.getElementType());
  Value zeros = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  return tensor::InsertSliceOp::create(b, loc, slice, zeros, offsets, sizes,
                                       strides);
}

Value GroupedMatmulExpander::buildNumGroups() {
  Value bounds = tensor::DimOp::create(b, loc, op.getBounds(), 0);
  if (op.isMasked())
    return bounds;
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  return b.createOrFold<arith::SubIOp>(loc, bounds, one);
}

Value GroupedMatmulExpander::buildInit() {
  RankedTensorType type = op.getResult().getType();
  int64_t rankOfA = op.getShapeOfA().size();
  int64_t rankOfB = op.getShapeOfB().size();
  SmallVector<OpFoldResult> sizes;
  if (type.getRank() == 3)
    sizes.push_back(buildNumGroups());
  sizes.push_back(
      tensor::getMixedSize(b, loc, getElements(lhs),
                           op.getTransposeA() ? rankOfA - 1 : rankOfA - 2));
  sizes.push_back(
      tensor::getMixedSize(b, loc, getElements(rhs),
                           op.getTransposeB() ? rankOfB - 1 : rankOfB - 2));
  for (auto [size, extent] : llvm::zip_equal(sizes, type.getShape()))
    if (!ShapedType::isDynamic(extent))
      size = b.getIndexAttr(extent);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  if (op.sumsGroups())
    return empty;
  // Rows of no group.
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

Value GroupedMatmulExpander::loadBound(Value number) {
  Value bound = tensor::ExtractOp::create(b, loc, op.getBounds(), number);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), bound);
}

Part GroupedMatmulExpander::buildTokens(Value group) {
  int64_t dim = getTokenDim();
  Value rows = tensor::DimOp::create(b, loc, getElements(lhs), dim);
  auto isNoLess = [&](Value upper, Value lower) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, lower,
                                 upper);
  };
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  if (op.isMasked()) {
    Value count = loadBound(group);
    cf::AssertOp::create(
        b, loc,
        arith::AndIOp::create(b, loc, isNoLess(count, zero),
                              isNoLess(rows, count)),
        "expected counts of groups that are not negative and do not exceed the "
        "number of rows that a group has room for");
    return {dim, b.getIndexAttr(0), count};
  }
  Value begin = loadBound(group);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value end = loadBound(arith::AddIOp::create(b, loc, group, one));
  Value inOrder = arith::AndIOp::create(
      b, loc, isNoLess(begin, zero),
      arith::AndIOp::create(b, loc, isNoLess(end, begin), isNoLess(rows, end)));
  cf::AssertOp::create(b, loc, inOrder,
                       "expected offsets of groups that begin with 0, do not "
                       "decrease and do not exceed the number of rows");
  return {dim, begin, arith::SubIOp::create(b, loc, end, begin).getResult()};
}

Value GroupedMatmulExpander::buildGroup(Value group, Part tokens) {
  bool sumsGroups = op.sumsGroups(), isMasked = op.isMasked();
  // What has a dimension of groups has one index of it.
  Part ofGroup{0, group, b.getIndexAttr(1)};
  Value a = lhs, otherB = rhs;
  Part ofA = tokens;
  if (isMasked) {
    a = sliceOperand(a, ofGroup, /*dropsDim=*/true);
    --ofA.dim;
  }
  auto sums = TensorCoreAccumulation::get(op);
  if (sums && isa<ScaledType>(a.getType()) != op.isScaled())
    sums = std::nullopt;
  // Groups that are counted begin with a block.
  int64_t blockK = sums && sumsGroups && !isMasked ? sums->blockK : 1;
  a = sliceOperand(a, ofA, /*dropsDim=*/false, blockK);
  if (isMasked || !sumsGroups)
    otherB = sliceOperand(otherB, ofGroup, /*dropsDim=*/true);
  Part ofB{op.getTransposeB() ? 0 : 1, tokens.offset, tokens.size};
  if (sumsGroups)
    otherB = sliceOperand(otherB, ofB, /*dropsDim=*/false, blockK);
  RankedTensorType type = op.getResult().getType();
  int64_t rank = type.getRank();
  SmallVector<Value> operands;
  for (Value operand : op.getEpilogueOperands()) {
    if (rank == 3)
      operand = sliceEpilogueOperand(operand, ofGroup, rank, /*dropsDim=*/true);
    if (!sumsGroups)
      operand = sliceEpilogueOperand(operand, {0, tokens.offset, tokens.size},
                                     /*rank=*/2, /*dropsDim=*/false);
    operands.push_back(operand);
  }
  SmallVector<int64_t> shape(type.getShape().take_back(2));
  if (!sumsGroups)
    shape.front() = ShapedType::kDynamic;
  bool isScaled = isa<ScaledType>(a.getType());
  auto matmul =
      MatmulOp::create(b, loc, type.clone(shape), a, otherB, operands,
                       isScaled ? op.getAccumulate() : Accumulate::Fast,
                       op.getTransposeA(), op.getTransposeB());
  IRMapping mapping;
  op.getEpilogue().cloneInto(&matmul.getEpilogue(), mapping);
  if (sums)
    sums->set(matmul);
  return matmul.getResult();
}

void GroupedMatmulExpander::expand() {
  lhs = op.getA();
  rhs = op.getB();
  if (op.sumsGroups() && op.isScaled() &&
      !canSliceK(TensorCoreAccumulation::get(op))) {
    lhs = widen(lhs);
    rhs = widen(rhs);
  }
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value zero = index(0), one = index(1), groups = buildNumGroups();
  Value init = buildInit();
  auto loop = scf::ForOp::create(b, loc, zero, groups, one, ValueRange{init});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value group = loop.getInductionVar();
  Part tokens = buildTokens(group);
  Value product = buildGroup(group, tokens);
  Value carried = loop.getRegionIterArg(0);
  // Nothing has a place in a tensor without elements.
  if (llvm::is_contained(op.getResult().getType().getShape(), 0)) {
    scf::YieldOp::create(b, loc, carried);
    b.replaceOp(op, loop.getResults());
    return;
  }
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, carried);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  if (sizes.size() == 3) {
    offsets.front() = group;
    sizes.front() = b.getIndexAttr(1);
  }
  if (!op.sumsGroups()) {
    offsets[sizes.size() - 2] = tokens.offset;
    sizes[sizes.size() - 2] = tokens.size;
  }
  Value inserted = tensor::InsertSliceOp::create(b, loc, product, carried,
                                                 offsets, sizes, strides);
  scf::YieldOp::create(b, loc, inserted);
  b.replaceOp(op, loop.getResults());
}

void fp8::expandGroupedMatmuls(Operation *root) {
  SmallVector<GroupedMatmulOp> ops;
  root->walk([&](GroupedMatmulOp op) { ops.push_back(op); });
  for (GroupedMatmulOp op : ops) {
    IRRewriter rewriter(op);
    GroupedMatmulExpander(rewriter, op).expand();
  }
}
