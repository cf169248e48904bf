//===- DigitReshape.h - Tensors in another order of digits ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_DIGITRESHAPE_H
#define FP8_LIB_KERNELS_ATTENTION_DIGITRESHAPE_H

#include "ElementTrace.h"

namespace mlir::fp8 {

/// Whether a tensor of `from` has its elements where one of `to` has them.
bool haveSameOrder(const DigitTable &digits, const Place &from,
                   const Place &to);

/// `tensor`, whose dimensions have the digits `from`, as one whose dimensions
/// have those of `to`, which are the same digits: reshapes, and a transpose
/// where the order changes. Its type is `type`, if that is given. Null where
/// two extents of one dimension are unknown.
Value reshapeDigits(OpBuilder &b, Location loc, const DigitTable &digits,
                    Value tensor, const Place &from, const Place &to,
                    RankedTensorType type = {});
inline Value reshapeDigits(OpBuilder &b, Location loc, const DigitTable &digits,
                           Value tensor, const Place &from, const Place &to,
                           Type type) {
  return reshapeDigits(b, loc, digits, tensor, from, to,
                       cast<RankedTensorType>(type));
}

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_DIGITRESHAPE_H
