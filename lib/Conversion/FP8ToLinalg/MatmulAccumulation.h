//===- MatmulAccumulation.h - How products are added up ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMULACCUMULATION_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMULACCUMULATION_H

#include "FP8ToLinalg.h"
#include "fp8/IR/TensorCoreAccumulation.h"

namespace mlir::fp8 {

/// One operand of a product, converted.
struct MatmulOperand {
  /// In f32, and where its dimensions stand: dimension i of the operand as the
  /// op sees it is `permutation[i]` of `values`.
  Value values;
  SmallVector<int64_t> permutation;
  bool isB = false;
  /// Its type as the op sees it, if it has factors; they are as they were
  /// given, transposed or not.
  ScaledType type;
  Value factors, tensorFactor;
  bool isTransposed = false;

  /// Index of the factor for an element of the result, where factors do not
  /// change along K, or are those of a block.
  AffineMap getFactorMap(OpBuilder &builder) const;
};

/// Element by element in f32, where it is not that already.
Value widenToF32(OpBuilder &b, Location loc, Value tensor);

/// f32 sum over K of [batch x] M x K times [batch x] N x K.
Value buildContract(OpBuilder &b, Location loc, const MatmulOperand &lhs,
                    const MatmulOperand &rhs, int64_t rank,
                    std::optional<TensorCoreAccumulation> sums);

/// A tensor core's sum of each block, times its factors, added up in f32 with
/// one rounding each; parts of K by themselves, then together.
Value buildBlockedSums(OpBuilder &b, Location loc, const MatmulOperand &lhs,
                       const MatmulOperand &rhs, int64_t rank,
                       const TensorCoreAccumulation &sums);

/// A tensor core's sum of products with their factors, but for those of whole
/// tensors.
Value buildScaledSums(OpBuilder &b, Location loc, const MatmulOperand &lhs,
                      const MatmulOperand &rhs, int64_t rank,
                      const TensorCoreAccumulation &sums);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMULACCUMULATION_H
