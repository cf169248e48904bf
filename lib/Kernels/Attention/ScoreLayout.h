//===- ScoreLayout.h - Which scores a thread has ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_SCORELAYOUT_H
#define FP8_LIB_KERNELS_ATTENTION_SCORELAYOUT_H

#include "../Blocks/KernelBuilder.h"

namespace mlir::fp8 {

/// Which scores of a tile of keys a thread has, as tensor cores give them: of
/// one row, or of two that are 8 apart.
struct ScoreLayout {
  int64_t rows;
  /// Lanes that share a row.
  int64_t lanes;

  /// Number of the row, 0 or 1, of score `i` of the thread, and its column less
  /// that of the thread's first.
  int64_t getRow(int64_t i) const { return rows == 2 ? i / 2 % 2 : 0; }
  int64_t getColumn(int64_t i) const {
    return rows == 2 ? i / 4 * 8 + i % 2 : i;
  }
  /// The first row (i32) of thread `thread` of the warps that have the tile,
  /// and its first column.
  Value getFirstRow(KernelBuilder &b, Value thread) const {
    if (rows == 1)
      return thread;
    return b.add(b.mul(b.shiftRight(thread, 5), 16),
                 b.shiftRight(b.bitAnd(thread, 31), 2));
  }
  Value getFirstColumn(KernelBuilder &b, Value thread) const {
    return rows == 1 ? b.i32(0) : b.mul(b.bitAnd(thread, 3), 2);
  }
};

/// Accumulators of wgmma (PTX ISA, "Register Fragments for m64nNk*").
inline constexpr ScoreLayout kFragmentScores{/*rows=*/2, /*lanes=*/4};
/// A lane of tensor memory (tcgen05.ld.32x32b).
inline constexpr ScoreLayout kLaneScores{/*rows=*/1, /*lanes=*/1};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_SCORELAYOUT_H
