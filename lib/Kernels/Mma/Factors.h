//===- Factors.h - Factors of blocks that tensor cores multiply -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_FACTORS_H
#define FP8_LIB_KERNELS_MMA_FACTORS_H

#include "MatmulContext.h"
#include "Mma.h"

namespace mlir::fp8::mma {

/// Copies a tile's factors of one operand, bytes that run along K, to stages of
/// shared memory: words of four (cp.async), those of a row side by side.
class FactorLoader {
public:
  /// `number` is which of both B they are of, where there is a pair.
  FactorLoader(const MatmulContext &kernel, const Tile &tile, bool ofRows,
               int64_t number);

  /// The thread's part of those of K block `k`, to a stage (i32); beyond the
  /// operand they are zero.
  void copy(Value k, Value stage) const;

private:
  const MatmulContext &kernel;
  KernelBuilder &b;
  int64_t words, count, offset, stride;
  /// The thread's first factor and row, bytes from one row to the next, where
  /// rows end, words of a row, and which of them is the thread's.
  Value base, first, strideRow, end, wordsOfRow, word;
};

/// The words of factors that an instruction takes from its lanes.
class FactorWords {
public:
  FactorWords(const MatmulContext &kernel, bool ofRows)
      : kernel(kernel), ofRows(ofRows) {}

  /// Those of 16 rows from `first` on, of the `step`-th 32 bytes of K. A row's
  /// word is in the first lane of four that have it, that of the row 8 behind
  /// it in the second.
  Value load(Value stage, int64_t first, int64_t step) const;

private:
  const MatmulContext &kernel;
  bool ofRows;
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_FACTORS_H
