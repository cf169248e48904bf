//===- SwizzledMatrix.cpp - A tile of attention in shared memory ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SwizzledMatrix.h"

using namespace mlir;
using namespace mlir::fp8;

SwizzledMatrix::SwizzledMatrix(Type elementType, int64_t rows, int64_t columns)
    : elementType(elementType), rows(rows),
      rowBytes(columns * elementType.getIntOrFloatBitWidth() / 8) {
  width = 128;
  while (rowBytes % width != 0)
    width /= 2;
}

Value SwizzledMatrix::getSwizzle(KernelBuilder &b, Value row) const {
  // Address bits 4.. are exclusive-ored with bits 7..: lines of less than 128
  // bytes share these.
  return b.bitAnd(b.shiftRight(row, 128 / width / 2), width / 16 - 1);
}

Value SwizzledMatrix::locate(KernelBuilder &b, Value row, Value chunk) const {
  int64_t inLine = width / 16;
  Value place = b.bitXor(b.rem(chunk, inLine), getSwizzle(b, row));
  Value box = b.mul(b.div(chunk, inLine), getBoxBytes());
  return b.add(b.add(box, b.mul(row, width)), b.mul(place, 16));
}
