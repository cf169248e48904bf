//===- MatrixLoader.h - Swizzled matrices to fragments ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_MATRIXLOADER_H
#define FP8_LIB_KERNELS_MMA_MATRIXLOADER_H

#include "../Attention/SwizzledMatrix.h"
#include "Mma.h"

namespace mlir::fp8::mma {

/// Loads words of operands (ldmatrix) from a swizzled matrix in shared memory:
/// 16 rows, or 16 columns, by 32 bytes of K.
class MatrixLoader {
public:
  /// How the matrix lies: its rows are the instruction's rows or columns, with
  /// K innermost, or K's lines are its rows, of 16 bits or of codes.
  enum class Use { Rows, Columns, Lines, LinesOfCodes };

  /// `first` (i32, a multiple of 16) is the warp's first row; null for 0.
  MatrixLoader(KernelBuilder &b, const SwizzledMatrix &matrix, Use use,
               Value shared, Value lane, Value first = {});

  /// From `row` rows, a multiple of 16, and `chunk` times 16 bytes further;
  /// `begin` (i32) is the matrix.
  Words load(Value begin, int64_t row, int64_t chunk) const;

private:
  KernelBuilder &b;
  const SwizzledMatrix &matrix;
  bool transposed;
  Value shared;
  /// What a lane's address has of its own.
  Value place;
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_MATRIXLOADER_H
