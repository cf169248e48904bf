//===- RowBody.cpp - Rows that a body reads by an index -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StridedBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fp8;

/// A dimension's index as the last of a load, or that within a window: clamped
/// from `first` on to `size` places.
namespace {
struct RowIndex {
  linalg::IndexOp index;
  int64_t first = 0, size = 0;
};
} // namespace

static RowIndex findRowIndex(Value value) {
  RowIndex row;
  row.index = value.getDefiningOp<linalg::IndexOp>();
  auto wide = value.getDefiningOp<arith::IndexCastUIOp>();
  auto clamped = wide ? wide.getIn().getDefiningOp<arith::MinUIOp>() : nullptr;
  std::optional<int64_t> last =
      clamped ? getConstantIntValue(clamped.getRhs()) : std::nullopt;
  if (!last)
    return row;
  Value place = clamped.getLhs();
  if (auto moved = place.getDefiningOp<arith::SubIOp>()) {
    std::optional<int64_t> first = getConstantIntValue(moved.getRhs());
    if (!first)
      return row;
    row.first = *first;
    place = moved.getLhs();
  } else if (auto moved = place.getDefiningOp<arith::AddIOp>()) {
    std::optional<int64_t> first = getConstantIntValue(moved.getRhs());
    if (!first)
      return row;
    row.first = *first;
    place = moved.getLhs();
  }
  if (auto narrow = place.getDefiningOp<arith::IndexCastOp>())
    row.index = narrow.getIn().getDefiningOp<linalg::IndexOp>();
  row.size = *last + 1;
  return row;
}

int64_t StridedBody::getRowWidth(memref::LoadOp load, int64_t lanes) {
  MemRefType type = load.getMemRefType();
  std::optional<int64_t> bytes = getElementBytes(type.getElementType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (load->getBlock() != op.getBlock() || load.getIndices().empty() ||
      op->isAncestor(load.getMemRef().getParentRegion()->getParentOp()) ||
      !bytes || !isAligned || isFlat ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      strides.back() != 1 || ShapedType::isDynamic(offset) ||
      ShapedType::isDynamicShape(strides))
    return 1;
  RowIndex last = findRowIndex(load.getIndices().back());
  if (!last.index || loops.findLoop(last.index.getDim()) != along ||
      llvm::any_of(load.getIndices().drop_back(),
                   [&](Value index) { return isVarying(index); }))
    return 1;
  int64_t width = std::min(lanes, kAccessBytes / *bytes);
  for (int64_t stride : ArrayRef(strides).drop_back())
    width = std::gcd(width, stride);
  // Neighbours are in a window all, or none of them is.
  width = std::gcd(std::gcd(width, last.first), last.size);
  return std::gcd(width, offset);
}

bool StridedBody::loadsElements(int64_t lanes) {
  findVarying(/*isChained=*/false);
  return llvm::any_of(
      op.getBlock()->getOps<memref::LoadOp>(), [&](memref::LoadOp load) {
        return isVarying(load.getResult()) && getRowWidth(load, lanes) == 1;
      });
}

SmallVector<Value> StridedBody::loadRow(memref::LoadOp load,
                                        const IRMapping &mapping,
                                        int64_t width) {
  SmallVector<OpFoldResult> strides;
  OpFoldResult first;
  Value memref = load.getMemRef();
  if (failed(getMixedLayout(b, loc, memref, strides, first)))
    llvm_unreachable("getRowWidth has seen the layout");
  Value offset = getIndex(first);
  SmallVector<Value> indices;
  for (Value index : load.getIndices())
    indices.push_back(mapping.lookupOrDefault(index));
  // Beside a window its last neighbours are read, from the first of them on.
  if (findRowIndex(load.getIndices().back()).size != 0)
    indices.back() = arith::AndIOp::create(b, loc, indices.back(),
                                           getIndex(b.getIndexAttr(-width)));
  for (auto [index, stride] : llvm::zip_equal(indices, strides))
    offset = arith::AddIOp::create(
        b, loc, offset, arith::MulIOp::create(b, loc, index, getIndex(stride)));
  return loadFrom(getGlobalPointer(b, loc, memref), offset, /*stride=*/Value(),
                  load.getType(), /*lanes=*/width, width);
}
