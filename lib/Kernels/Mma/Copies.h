//===- Copies.h - Operands to shared memory, by all threads -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_COPIES_H
#define FP8_LIB_KERNELS_MMA_COPIES_H

#include "MatmulContext.h"

namespace mlir::fp8::mma {

/// Copies the K blocks of a tile's operand to stages of shared memory, 16 bytes
/// at a time (cp.async), as bulk copies would: swizzled, and with zeros beyond
/// the operand.
class OperandLoader {
public:
  /// `number` is which of both B it copies, where there is a pair.
  OperandLoader(const MatmulContext &kernel, const Tile &tile, bool ofRows,
                int64_t number);

  /// The thread's part of K block `k`, to a stage (i32).
  void copy(Value k, Value stage) const;

private:
  void copyRows(Value k, Value to) const;
  void copyLines(Value k, Value to) const;
  void copyOne(Value to, Value from, Value bytes) const;
  /// Copies 16 bytes, or zeros if not `isThere` (i1).
  void copyWhole(Value to, Value from, Value isThere) const;
  /// What is left of `extent` bytes from `begin` on, up to 16.
  Value getBytesLeft(Value begin, Value extent) const;

  const MatmulContext &kernel;
  KernelBuilder &b;
  const OperandTile &tile;
  int64_t offset, stride, threads, elementBytes;
  /// The tensor's first element, and elements from one row to the next.
  Value base, strideRow;
  /// The tile's first row, where rows end, and K of the operand, in what a
  /// byte or more has of it; where the tile's K begins, null for 0.
  Value first, end, extentK, firstK;
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_COPIES_H
