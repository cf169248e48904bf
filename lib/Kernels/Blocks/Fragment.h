//===- Fragment.h - Where a thread's accumulators lie in the result -*- C++
//-*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_FRAGMENT_H
#define FP8_LIB_KERNELS_BLOCKS_FRAGMENT_H

#include "KernelBuilder.h"

namespace mlir::fp8 {

/// One wave (64 rows) of a tile as one consumer thread holds it: registers
/// 4 j + 2 h + e are row `row + 8 h` and column `col + 8 j + e`. Rows and
/// columns are those of the tensor core: with `swapped` operands the row is an
/// index of N and the column one of M.
struct Fragment {
  Value row, col;
  bool swapped;

  Value getRow(KernelBuilder &b, int64_t h) const { return b.add(row, 8 * h); }
  Value getCol(KernelBuilder &b, int64_t j, int64_t e) const {
    return b.add(col, 8 * j + e);
  }
};

/// Two neighbouring elements of a row.
using Pair = std::array<Value, 2>;

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_FRAGMENT_H
