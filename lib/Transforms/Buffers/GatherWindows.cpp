//===- GatherWindows.cpp - Tensors within tensors in one loop -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GatherWindows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

/// What is written has to be so much of the whole that a copy of all of it,
/// which the driver makes, and another kernel are more.
static constexpr int64_t kLeastShare = 8;
/// Indices have 32 bits.
static constexpr int64_t kMaxElements = int64_t(1) << 31;

static bool isTaken(RankedTensorType part, RankedTensorType whole) {
  Type element = whole.getElementType();
  if (!part.hasStaticShape() || !whole.hasStaticShape() ||
      part.getRank() != whole.getRank() || !element.isIntOrFloat())
    return false;
  unsigned bits = element.getIntOrFloatBitWidth();
  return (bits == 1 || bits % 8 == 0) && part.getNumElements() > 0 &&
         part.getShape() != whole.getShape() &&
         whole.getNumElements() < kMaxElements;
}

bool fp8::isWindow(tensor::PadOp op) {
  auto isAmount = [](int64_t amount) {
    return !ShapedType::isDynamic(amount) && amount >= 0;
  };
  // What is computed for this alone is computed in its place.
  Value source = op.getSource();
  return isTaken(op.getSourceType(), op.getResultType()) &&
         op.getConstantPaddingValue() &&
         llvm::all_of(op.getStaticLow(), isAmount) &&
         llvm::all_of(op.getStaticHigh(), isAmount) &&
         !(source.getDefiningOp<linalg::LinalgOp>() && source.hasOneUse());
}

/// Whether the program may write to what a caller gives it.
static bool isReadOnly(Value tensor) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  if (!function || !function.isPublic())
    return false;
  auto isWritable = function.getArgAttrOfType<BoolAttr>(
      argument.getArgNumber(),
      bufferization::BufferizationDialect::kWritableAttrName);
  return !isWritable || !isWritable.getValue();
}

bool fp8::isWindow(tensor::InsertSliceOp op) {
  auto isKnown = [](int64_t value) { return !ShapedType::isDynamic(value); };
  return isTaken(op.getSourceType(), op.getDestType()) &&
         llvm::all_of(op.getStaticOffsets(), isKnown) && op.hasUnitStride() &&
         isReadOnly(op.getDest()) &&
         op.getSourceType().getNumElements() >=
             op.getDestType().getNumElements() / kLeastShare;
}

namespace {
/// Dimensions that are one: the last ones are whole in both tensors. Numbers
/// are those of the one that they become.
struct WindowDim {
  ReassociationIndices dims;
  int64_t first, part, whole;

  bool isWhole() const { return part == whole; }
};
} // namespace

static SmallVector<WindowDim> getDims(ArrayRef<int64_t> first,
                                      ArrayRef<int64_t> part,
                                      ArrayRef<int64_t> whole, bool isMerged) {
  SmallVector<WindowDim> result;
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip_equal(part, whole))) {
    auto [own, all] = sizes;
    if (result.empty() || own != all || !isMerged) {
      result.push_back({{static_cast<int64_t>(dim)}, first[dim], own, all});
      continue;
    }
    WindowDim &last = result.back();
    last.dims.push_back(dim);
    last.first *= all;
    last.part *= all;
    last.whole *= all;
  }
  return result;
}

/// `tensor` with the dimensions that are one as one.
static Value merge(ImplicitLocOpBuilder &b, Value tensor,
                   ArrayRef<WindowDim> dims) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getRank() == static_cast<int64_t>(dims.size()))
    return tensor;
  SmallVector<ReassociationIndices> groups;
  for (const WindowDim &dim : dims)
    groups.push_back(dim.dims);
  return tensor::CollapseShapeOp::create(b, tensor, groups);
}

/// The element of `part` at its place, and `outside` where there is none. What
/// is read has a place in any case, and costs no branch.
static Value select(ImplicitLocOpBuilder &b, Value part, Value outside,
                    ArrayRef<WindowDim> dims) {
  SmallVector<Value> indices;
  Value isInside;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  for (auto [position, dim] : llvm::enumerate(dims)) {
    indices.push_back(linalg::IndexOp::create(b, position));
    if (dim.isWhole())
      continue;
    Value index = arith::IndexCastOp::create(b, b.getI32Type(), indices.back());
    // What lies before the first is beyond the last as a number without sign.
    if (dim.first != 0)
      index = arith::SubIOp::create(b, index, number(dim.first));
    // Outside along another dimension none is inside: a number, since it is the
    // same along a row, and a condition would be told apart for each element.
    Value limit = number(dim.part);
    if (isInside)
      limit = arith::SelectOp::create(b, isInside, limit, number(0));
    isInside =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, limit);
    index = arith::MinUIOp::create(b, index, number(dim.part - 1));
    indices.back() = arith::IndexCastUIOp::create(b, b.getIndexType(), index);
  }
  Value element = tensor::ExtractOp::create(b, part, indices);
  return arith::SelectOp::create(b, isInside, element, outside);
}

/// `part` in a tensor of `type` from `first` on, among `outside`: elements of a
/// tensor of that type, or one.
static void gather(RewriterBase &rewriter, Operation *op, Value part,
                   Value outside, ArrayRef<int64_t> first) {
  ImplicitLocOpBuilder b(op->getLoc(), rewriter);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  // A slice has gaps in memory, and would be copied.
  bool isMerged = !part.getDefiningOp<tensor::ExtractSliceOp>();
  SmallVector<WindowDim> dims =
      getDims(first, cast<RankedTensorType>(part.getType()).getShape(),
              type.getShape(), isMerged);
  SmallVector<int64_t> sizes;
  for (const WindowDim &dim : dims)
    sizes.push_back(dim.whole);
  part = merge(b, part, dims);
  SmallVector<Value> inputs;
  if (isa<RankedTensorType>(outside.getType()))
    inputs.push_back(merge(b, outside, dims));
  int64_t rank = dims.size();
  Value empty = tensor::EmptyOp::create(b, sizes, type.getElementType());
  SmallVector<AffineMap> maps(inputs.size() + 1,
                              rewriter.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  Value result =
      linalg::GenericOp::create(
          b, empty.getType(), inputs, empty, maps, iterators,
          [&](OpBuilder &inner, Location loc, ValueRange arguments) {
            ImplicitLocOpBuilder body(loc, inner);
            linalg::YieldOp::create(
                body,
                select(body, part, inputs.empty() ? outside : arguments.front(),
                       dims));
          })
          .getResult(0);
  if (rank != type.getRank()) {
    SmallVector<ReassociationIndices> groups;
    for (const WindowDim &dim : dims)
      groups.push_back(dim.dims);
    result = tensor::ExpandShapeOp::create(b, type, result, groups);
  }
  rewriter.replaceOp(op, result);
}

void fp8::gatherWindow(RewriterBase &rewriter, tensor::PadOp op) {
  gather(rewriter, op, op.getSource(), op.getConstantPaddingValue(),
         op.getStaticLow());
}

void fp8::gatherWindow(RewriterBase &rewriter, tensor::InsertSliceOp op) {
  gather(rewriter, op, op.getSource(), op.getDest(), op.getStaticOffsets());
}
