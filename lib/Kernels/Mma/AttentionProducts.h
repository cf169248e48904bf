//===- AttentionProducts.h - Products of attention by mma.sync --*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_ATTENTIONPRODUCTS_H
#define FP8_LIB_KERNELS_MMA_ATTENTIONPRODUCTS_H

#include "AttentionMemory.h"
#include "MatrixLoader.h"

namespace mlir::fp8::mma {

/// Both products of a warp with 16 queries.
class AttentionProducts {
public:
  explicit AttentionProducts(const AttentionContext &kernel);

  /// Scores of the tile of keys in a stage (i32), as sums of matrices.
  SmallVector<Value> multiplyQK(Value stage);
  /// Adds the product of powers, as words of an operand, and the values in a
  /// stage to `sums`, times `corrections` of their rows, if there are any, with
  /// the product in sums of its own. Of values of 8 bits the even ones of 16
  /// columns come first.
  void addPV(ArrayRef<Value> p, Value stage, const Value (&corrections)[2],
             MutableArrayRef<Value> sums);

private:
  /// The words of 16 columns of values for `step`-th 32 bytes of keys.
  Words loadValues(Value begin, int64_t step, int64_t columns);

  const AttentionContext &kernel;
  KernelBuilder &b;
  const AttentionMemory &memory;
  bool hasCodes;
  Mma qk, pv;
  MatrixLoader q, k, v;
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_ATTENTIONPRODUCTS_H
