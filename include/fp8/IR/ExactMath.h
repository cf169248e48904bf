//===- ExactMath.h - Who asks for a CPU's rounding --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_EXACTMATH_H
#define FP8_IR_EXACTMATH_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::fp8 {

inline constexpr llvm::StringLiteral kExactAttrName = "fp8.exact";
/// On a quotient or a root of f32 in a fusion: a GPU's approximation will do,
/// and a divisor or a radicand is neither above 2^126 nor below 2^-126 where
/// that would matter. `fastmath<afn>` says nothing about ranges.
inline constexpr llvm::StringLiteral kRoughAttrName = "fp8.rough";

/// Whether kernels round quotients and functions of an operation as a CPU does:
/// it, or an operation around it, has `fp8.exact`.
bool hasExactMath(Operation *op);

} // namespace mlir::fp8

#endif // FP8_IR_EXACTMATH_H
