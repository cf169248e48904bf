//===- Widening.h - Floats that are only widened ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_UTILS_WIDENING_H
#define FP8_LIB_TRANSFORMS_UTILS_WIDENING_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// Whether `op` does nothing but widen floats, element by element.
bool isWidening(linalg::GenericOp op);

/// What `tensor` was widened from, or `tensor` itself: the numbers are the
/// same.
Value skipWidening(Value tensor);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_UTILS_WIDENING_H
