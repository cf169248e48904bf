//===- SwizzledMatrix.h - A tile of attention in shared memory --*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_SWIZZLEDMATRIX_H
#define FP8_LIB_KERNELS_ATTENTION_SWIZZLEDMATRIX_H

#include "../Blocks/KernelBuilder.h"

namespace mlir::fp8 {

/// A matrix in shared memory as bulk tensor copies write it and tensor cores
/// read it: boxes beside each other, each with a line of `width` bytes (128, 64
/// or 32) of every row, swizzled in groups of 8 lines (PTX ISA, "Swizzling
/// Modes").
struct SwizzledMatrix {
  Type elementType;
  int64_t rows = 0, rowBytes = 0, width = 0;

  SwizzledMatrix() = default;
  /// `columns` elements a row, whose bytes are a multiple of 32.
  SwizzledMatrix(Type elementType, int64_t rows, int64_t columns);

  int64_t getBoxes() const { return rowBytes / width; }
  int64_t getBoxBytes() const { return rows * width; }
  int64_t getBytes() const { return rows * rowBytes; }
  int64_t getElementBytes() const {
    return elementType.getIntOrFloatBitWidth() / 8;
  }
  /// Columns of a box.
  int64_t getBoxColumns() const { return width / getElementBytes(); }

  /// Where the `step`-th 32 bytes of a row are from its first.
  int64_t getStepBytes(int64_t step) const {
    return step * 32 / width * getBoxBytes() + step * 32 % width;
  }
  /// What the numbers of 16 bytes in a line of row `row` (i32) are
  /// exclusive-ored with.
  Value getSwizzle(KernelBuilder &b, Value row) const;
  /// The byte (i32) of the 16 bytes number `chunk` of row `row` (i32).
  Value locate(KernelBuilder &b, Value row, Value chunk) const;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_SWIZZLEDMATRIX_H
