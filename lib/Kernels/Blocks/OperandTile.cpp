//===- OperandTile.cpp - An operand in shared memory ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OperandTile.h"

using namespace mlir;
using namespace mlir::fp8;

OperandTile::OperandTile(const OperandSpec &operand, int64_t extent,
                         int64_t blocks, int64_t part)
    : elementType(operand.elementType), major(operand.major),
      elementBytes(operand.getElementBytes()), sharing(operand.getSharing()),
      bytes(extent * kRowBytes), parts(blocks),
      swizzle(getSwizzle(part ? part : extent)) {
  // An atom has 8 rows of K, or a line of rows; narrower ones would cost more
  // than sharing saves.
  if (extent % (8 * blocks) != 0 || getSwizzle(extent / blocks) != swizzle)
    parts = 1;
  boxRows = isTransposed() ? swizzle / elementBytes : getPartRows();
}

int64_t OperandTile::getSwizzle(int64_t rows) const {
  int64_t width = kRowBytes;
  if (isTransposed())
    while (width > 16 && rows * elementBytes % width != 0)
      width /= 2;
  return width;
}

SmallVector<int64_t> OperandTile::getBox() const {
  if (isTransposed())
    return {boxRows, getBoxK()};
  return {getBoxK(), boxRows};
}

int64_t OperandTile::getBoxBytes() const { return boxRows * kRowBytes; }
