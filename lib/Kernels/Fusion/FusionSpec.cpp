//===- FusionSpec.cpp - What a streaming kernel computes ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionSpec.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

bool FusionBlock::isSingle() const {
  return batches == kWhole && rows == kWhole && columns == kWhole;
}

FusionBlock FusionSpec::getBlock(const FusionLayout &layout) const {
  FusionBlock block = getBlockOf(layout.block);
  // A tile has all of them.
  if (heldRows > 1 && block.rows == kWhole && block.columns != kWhole)
    block.rows = heldRows;
  return block;
}

FusionBlock FusionSpec::getBlockOf(ArrayRef<int64_t> block) const {
  switch (block.size()) {
  case 1:
    // A single row: what has all columns has all rows.
    return {block[0] == kWhole ? kWhole : 1, block[0] == kWhole ? kWhole : 1,
            block[0]};
  case 2:
    // A single batch, alike.
    return {block[0] == kWhole && block[1] == kWhole ? kWhole : 1, block[0],
            block[1]};
  default:
    if (!isBatched)
      return {block[1] == kWhole && block[2] == kWhole ? kWhole : 1, block[1],
              block[2]};
    return {block[0], block[1], block[2]};
  }
}

bool FusionSpec::isTransposed(const FusionLayout &layout) const {
  return !layout.isOrdered();
}

const FusionLayout &FusionSpec::getResultLayout(unsigned number) const {
  return *layouts.lookup(getBody().getTerminator()->getOperand(number));
}

std::optional<std::pair<unsigned, int64_t>>
FusionSpec::findExtent(int64_t dim) const {
  // Those that have all elements have all extents.
  for (bool isFull : {true, false})
    for (auto [number, input] : llvm::enumerate(inputs)) {
      const auto *at = llvm::find(input.layout.dims, dim);
      if (getBlock(input.layout).isFull() == isFull &&
          at != input.layout.dims.end() && input.layout.block[dim] == 1)
        return std::pair(number, at - input.layout.dims.begin());
    }
  return std::nullopt;
}

bool FusionSpec::hasKnownExtents() const {
  return llvm::none_of(ArrayRef{batch, rows, columns}, ShapedType::isDynamic);
}

std::string FusionSpec::describe() const {
  std::string text = llvm::formatv("{0}x{1}x{2} read", batch, rows, columns);
  llvm::raw_string_ostream os(text);
  for (const Input &input : inputs)
    if (getBlock(input.layout).isFull())
      os << ' ' << getElementTypeOrSelf(input.argument.getType())
         << (input.isGathered ? " by index" : "");
  os << " write";
  for (auto [i, type] : llvm::enumerate(FusionOp(op).getResultTypes())) {
    const FusionLayout &layout = getResultLayout(i);
    if (getBlock(layout).isFull())
      os << ' ' << getElementTypeOrSelf(type)
         << (isTransposed(layout) ? "^T" : "");
  }
  if (blockRows > 1 || blockColumns > 1)
    os << " block " << blockRows << 'x' << blockColumns;
  if (reducesRows)
    os << " by row";
  if (hasInvariantSums)
    os << " invariant";
  if (rotatesRows || rotatesColumns)
    os << " rotate";
  if (draws)
    os << " stochastic";
  return text;
}

double FusionSpec::getBytes() const {
  double bytes = 0;
  auto add = [&](Type type, const FusionLayout &layout) {
    if (getBlock(layout).isFull())
      bytes += getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8.0;
  };
  for (const Input &input : inputs)
    add(input.argument.getType(), input.layout);
  for (auto [i, type] : llvm::enumerate(FusionOp(op).getResultTypes()))
    add(type, getResultLayout(i));
  return bytes * batch * rows * columns;
}
