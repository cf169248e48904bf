//===- MatrixLoader.cpp - Swizzled matrices to fragments ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatrixLoader.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

// For rows, lanes address matrices of rows 0-7 and 8-15 of the first half of K,
// then of the second; of columns both halves of K of the first 8, then of the
// others. Of lines ldmatrix transposes matrices of 8 of them: two columns of 8
// for 16 lines, or one of 16 codes for 32, whose words have two columns of two
// lines.
MatrixLoader::MatrixLoader(KernelBuilder &b, const SwizzledMatrix &matrix,
                           Use use, Value shared, Value lane, Value first)
    : b(b), matrix(matrix),
      transposed(use == Use::Lines || use == Use::LinesOfCodes),
      shared(shared) {
  Value inMatrix = b.bitAnd(lane, 7);
  // Bits 3 and 4 of the lane's number.
  Value odd = b.bitAnd(b.shiftRight(lane, 3), 1), upper = b.shiftRight(lane, 4);
  Value row, chunk;
  switch (use) {
  case Use::Rows:
    row = b.add(inMatrix, b.mul(odd, 8));
    chunk = upper;
    break;
  case Use::Columns:
    row = b.add(inMatrix, b.mul(upper, 8));
    chunk = odd;
    break;
  case Use::Lines:
    row = b.bitAnd(lane, 15);
    chunk = upper;
    break;
  case Use::LinesOfCodes:
    row = lane;
    chunk = b.i32(0);
    break;
  }
  if (first)
    row = b.add(first, row);
  chunk = b.bitXor(chunk, matrix.getSwizzle(b, row));
  place = b.add(b.mul(row, matrix.width), b.mul(chunk, 16));
}

Words MatrixLoader::load(Value begin, int64_t row, int64_t chunk) const {
  // Rows are moved by multiples of 16, which change no swizzle.
  int64_t inLine = matrix.width / 16;
  Value own =
      chunk % inLine ? b.bitXor(place, b.i32(chunk % inLine * 16)) : place;
  own = b.add(b.add(begin, own),
              row * matrix.width + chunk / inLine * matrix.getBoxBytes());
  return loadMatrices(b, b.offset(shared, own), transposed);
}
