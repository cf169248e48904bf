//===- Philox.h - Random numbers that go by a counter -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 of Salmon et al., Parallel random numbers: as easy as 1, 2, 3
// (2011): ten rounds of two products and some exclusive ors make four words of
// a key and a counter. No state goes from one element to the next, so that
// elements are rounded in any order, on any target, alike.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_PHILOX_H
#define FP8_IR_PHILOX_H

#include "fp8/IR/ScalarBuilder.h"

namespace mlir::fp8 {

/// The words, i32, that one counter has: as many elements' numbers.
inline constexpr int64_t kPhiloxWords = 4;

/// The four words of `counter` (four i32) under `key` (two i32).
SmallVector<Value> buildPhilox(ScalarBuilder &b, ArrayRef<Value> counter,
                               ArrayRef<Value> key);

} // namespace mlir::fp8

#endif // FP8_IR_PHILOX_H
