//===- GroupedMatmul.cpp - grouped_matmul ---------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "fp8/IR/TensorCoreSums.h"
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
struct Range {
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
  Value buildSlice(Value tensor, Range range, bool dropsDim);
  /// Codes and factors of the range, or elements. `dropsDim`: of one index,
  /// without the dimension.
  Value sliceOperand(Value operand, Range range, bool dropsDim);
  /// Where factors change along the range: what the product is made from.
  Value widen(Value operand);
  Value sliceEpilogueOperand(Value operand, Range range, bool dropsDim);
  /// A slice of K, behind as many zeros as a kernel's first block has elements
  /// of other groups: its sums begin with that block.
  Value beginBlock(Value slice, Range range, int64_t blockK);
  Value buildInit();
  /// Offset `number` (index).
  Value loadOffset(Value number);
  Value buildGroup(Value group, Value begin, Value size);

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

Value GroupedMatmulExpander::buildSlice(Value tensor, Range range,
                                        bool dropsDim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets[range.dim] = range.offset;
  sizes[range.dim] = range.size;
  RankedTensorType full = tensor::ExtractSliceOp::inferResultType(type, sizes);
  SmallVector<int64_t> shape(full.getShape());
  if (dropsDim)
    shape.erase(shape.begin() + range.dim);
  return tensor::ExtractSliceOp::create(b, loc, full.clone(shape), tensor,
                                        offsets, sizes, strides);
}

Value GroupedMatmulExpander::sliceOperand(Value operand, Range range,
                                          bool dropsDim) {
  auto type = dyn_cast<ScaledType>(operand.getType());
  if (!type)
    return buildSlice(operand, range, dropsDim);
  auto parts = DisassembleOp::create(b, loc, operand);
  Value payload = buildSlice(parts.getPayload(), range, dropsDim);
  // Of a dimension that shares its factor there is one index.
  Range one{range.dim, b.getIndexAttr(0), b.getIndexAttr(1)};
  Range ofFactors = type.isBlocked(range.dim) ? range : one;
  auto slice = [&](Value factors, Range range) {
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

Value GroupedMatmulExpander::widen(Value operand) {
  auto type = cast<ScaledType>(operand.getType());
  return DequantizeOp::create(
      b, loc, RankedTensorType::get(type.getShape(), b.getF32Type()), operand);
}

Value GroupedMatmulExpander::sliceEpilogueOperand(Value operand, Range range,
                                                  bool dropsDim) {
  auto type = cast<RankedTensorType>(operand.getType());
  int64_t rank = op.getResult().getType().getRank();
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

Value GroupedMatmulExpander::beginBlock(Value slice, Range range,
                                        int64_t blockK) {
  if (auto type = dyn_cast<ScaledType>(slice.getType())) {
    auto parts = DisassembleOp::create(b, loc, slice);
    Value payload = beginBlock(parts.getPayload(), range, blockK);
    return AssembleOp::create(
        b, loc,
        type.cloneWith(cast<RankedTensorType>(payload.getType()).getShape(),
                       type.getBlock()),
        payload, parts.getScaleInv(), parts.getTensorScaleInv());
  }
  auto type = cast<RankedTensorType>(slice.getType());
  auto getIndex = [&](OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, loc, value);
  };
  Value block = arith::ConstantIndexOp::create(b, loc, blockK);
  Value others = arith::RemUIOp::create(b, loc, getIndex(range.offset), block);
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

Value GroupedMatmulExpander::buildInit() {
  RankedTensorType type = op.getResult().getType();
  int64_t rankOfB = op.getShapeOfB().size();
  SmallVector<OpFoldResult> sizes;
  if (op.sumsGroups()) {
    Value bounds = tensor::DimOp::create(b, loc, op.getOffsets(), 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    sizes.push_back(b.createOrFold<arith::SubIOp>(loc, bounds, one));
  }
  sizes.push_back(tensor::getMixedSize(b, loc, getElements(lhs),
                                       op.getTransposeA() ? 1 : 0));
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

Value GroupedMatmulExpander::loadOffset(Value number) {
  Value offset = tensor::ExtractOp::create(b, loc, op.getOffsets(), number);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), offset);
}

Value GroupedMatmulExpander::buildGroup(Value group, Value begin, Value size) {
  bool sumsGroups = op.sumsGroups();
  Range rows{op.sumsGroups() != op.getTransposeA() ? 1 : 0, begin, size};
  Value a = sliceOperand(lhs, rows, /*dropsDim=*/false);
  Range ofB = sumsGroups ? Range{op.getTransposeB() ? 0 : 1, begin, size}
                         : Range{0, group, b.getIndexAttr(1)};
  Value otherB = sliceOperand(rhs, ofB, /*dropsDim=*/!sumsGroups);
  auto sums = TensorCoreSums::get(op);
  if (sums && isa<ScaledType>(a.getType()) != op.isScaled())
    sums = std::nullopt;
  if (sums && sumsGroups) {
    a = beginBlock(a, rows, sums->blockK);
    otherB = beginBlock(otherB, ofB, sums->blockK);
  }
  // The part of the result, and of what is read beside it.
  Range part =
      sumsGroups ? Range{0, group, b.getIndexAttr(1)} : Range{0, begin, size};
  SmallVector<Value> operands;
  for (Value operand : op.getEpilogueOperands())
    operands.push_back(sliceEpilogueOperand(operand, part, sumsGroups));
  RankedTensorType type = op.getResult().getType();
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
  if (op.sumsGroups() && op.isScaled() && op.getScaledA().isBlocked(1)) {
    lhs = widen(lhs);
    rhs = widen(rhs);
  }
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value zero = index(0), one = index(1);
  Value bounds = tensor::DimOp::create(b, loc, op.getOffsets(), zero);
  Value groups = b.createOrFold<arith::SubIOp>(loc, bounds, one);
  int64_t tokens = op.sumsGroups() != op.getTransposeA() ? 1 : 0;
  Value rows = tensor::DimOp::create(b, loc, getElements(lhs), tokens);
  Value init = buildInit();
  auto loop = scf::ForOp::create(b, loc, zero, groups, one, ValueRange{init});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value group = loop.getInductionVar();
  Value begin = loadOffset(group);
  Value end = loadOffset(arith::AddIOp::create(b, loc, group, one));
  // A slice that is not there would be anybody's memory.
  auto holds = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  };
  Value inOrder = arith::AndIOp::create(
      b, loc, holds(arith::CmpIPredicate::sle, zero, begin),
      arith::AndIOp::create(b, loc,
                            holds(arith::CmpIPredicate::sle, begin, end),
                            holds(arith::CmpIPredicate::sle, end, rows)));
  cf::AssertOp::create(b, loc, inOrder,
                       "expected offsets of groups that begin with 0, do not "
                       "decrease and do not exceed the number of rows");
  Value size = arith::SubIOp::create(b, loc, end, begin);
  Value product = buildGroup(group, begin, size);
  Value carried = loop.getRegionIterArg(0);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, carried);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets.front() = op.sumsGroups() ? group : begin;
  sizes.front() = op.sumsGroups() ? OpFoldResult(b.getIndexAttr(1)) : size;
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
