//===- Promotion.h - Factors in f32 that change along K ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_PROMOTION_H
#define FP8_LIB_KERNELS_MMA_PROMOTION_H

#include "../Matmul/ScaleFactorCopy.h"
#include "MatmulContext.h"

namespace mlir::fp8::mma {

/// Factors in f32 of a tile's rows and columns, those of a K block in a stage:
/// warps copy them beside the operands, and multiply the block's sums by them.
class Promotion {
public:
  Promotion(const MatmulContext &kernel, const Tile &tile);

  /// Each operand's by a warp of its own, asynchronously.
  void copy(Value k, Value stage) const;

  /// Factors of the lane's rows of a subtile, 8 apart; null where the rows'
  /// side has none.
  using RowFactors = std::array<Value, 2>;
  RowFactors loadRows(Value stage, int64_t subtile) const;
  /// Those of the lane's columns among 16 from `col` on: two of the first 8 and
  /// two of the others; null as above.
  using ColFactors = std::array<Value, 4>;
  ColFactors loadCols(Value stage, int64_t col) const;

  /// Adds the product of 16 columns, eight registers, to their sums.
  void add(ArrayRef<Value> product, const RowFactors &ofRows,
           const ColFactors &ofCols, MutableArrayRef<Value> sums) const;

private:
  void addCopy(const Tile &tile, bool ofRows, int64_t number);
  Value getPlace(Value stage, bool ofRows) const;

  const MatmulContext &kernel;
  KernelBuilder &b;
  SmallVector<ScaleFactorCopy> copies;
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_PROMOTION_H
