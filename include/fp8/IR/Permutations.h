//===- Permutations.h - Of the dimensions of tensors ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_PERMUTATIONS_H
#define FP8_IR_PERMUTATIONS_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fp8 {

/// Whether a tensor of `type` is its own transpose: nothing but dimensions of
/// extent 1 change places, as with factors that hold for whole tensors.
inline bool isOwnTranspose(RankedTensorType type,
                           ArrayRef<int64_t> permutation) {
  for (auto [dim, from] : llvm::enumerate(permutation))
    if (from != static_cast<int64_t>(dim) &&
        (type.getDimSize(dim) != 1 || type.getDimSize(from) != 1))
      return false;
  return true;
}

} // namespace mlir::fp8

#endif // FP8_IR_PERMUTATIONS_H
