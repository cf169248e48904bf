//===- ClearRows.h - Rows of a result that no group has ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_CLEARROWS_H
#define FP8_LIB_KERNELS_MATMUL_CLEARROWS_H

#include "MatmulParams.h"

namespace mlir::fp8 {

/// Who clears rows: this and as many threads of each of so many blocks.
struct RowClearer {
  Value thread;
  int64_t threads;
  Value blocks;
  /// Promises that rows are multiples of 16 bytes, and begin at them.
  bool inBulk;
};

/// Zeros for rows of no group.
void clearRows(const MatmulParams &kernel, const GroupTable &table,
               const RowClearer &clearer);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_CLEARROWS_H
