//===- SkipTranspose.h - Operands that are transposed -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_SKIPTRANSPOSE_H
#define FP8_LIB_KERNELS_MATMUL_SKIPTRANSPOSE_H

#include "fp8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// What is transposed, if only the last two dimensions change places; null for
/// anything else.
inline Value getTransposed(Value operand) {
  auto transpose = operand.getDefiningOp<TransposeOp>();
  if (!transpose)
    return {};
  SmallVector<int64_t> expected =
      llvm::to_vector(llvm::seq<int64_t>(0, transpose.getPermutation().size()));
  if (expected.size() < 2)
    return {};
  std::swap(expected.back(), expected[expected.size() - 2]);
  return llvm::equal(transpose.getPermutation(), expected)
             ? transpose.getSource()
             : Value();
}

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_SKIPTRANSPOSE_H
