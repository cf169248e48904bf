//===- RowCopies.h - Rows of attention to shared memory ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_ROWCOPIES_H
#define FP8_LIB_KERNELS_MMA_ROWCOPIES_H

#include "../Attention/SwizzledMatrix.h"

namespace mlir::fp8::mma {

/// Where rows of an operand begin.
struct RowSource {
  /// The head's first element of batch 0, bytes from one batch and from one row
  /// to the next (i64).
  Value base, strideBatch, strideRow;

  /// Reads a tensor whose pointer and strides are the parameters of that name;
  /// `sequence` is its dimension of rows.
  static RowSource get(KernelBuilder &b,
                       llvm::function_ref<Value(const Twine &)> getParam,
                       StringRef name, Type element, int64_t sequence,
                       Value head);
};

/// The threads that copy, and dynamic shared memory.
struct RowCopier {
  KernelBuilder &b;
  Value shared, thread;
  int64_t threads;

  /// The batch of a row of the tile, the row in it (i32), and whether it is
  /// there (i1); those of one that is not are of one that is.
  using Find = llvm::function_ref<std::array<Value, 3>(Value row)>;

  /// Copies rows of `matrix` to byte `place` (i32), 16 bytes at a time
  /// (cp.async); those that are not there are zeros.
  void copy(const RowSource &source, const SwizzledMatrix &matrix, Value place,
            Find find) const;
  /// The same of codes of type `type`, as the numbers that `matrix` has: not
  /// in the background.
  void convert(const RowSource &source, Type type, const SwizzledMatrix &matrix,
               Value place, Find find) const;

private:
  /// `body` has a thread's rows, and numbers of 16 bytes of these.
  void
  forEachChunk(const SwizzledMatrix &matrix,
               llvm::function_ref<void(Value row, Value chunk)> body) const;
};

/// Rounds and stores a lane's sums of one row, number `half` of both that it
/// has, each times `factor`, to the row at `address`. With `areOddLast` the
/// even ones of 16 columns come before the odd ones.
void storeRow(KernelBuilder &b, Type type, ArrayRef<Value> sums, int64_t half,
              Value address, Value lane, bool areOddLast, Value factor);

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_ROWCOPIES_H
