//===- Rounding.h - f32 to 16 bits in kernels -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_ROUNDING_H
#define FP8_LIB_KERNELS_BLOCKS_ROUNDING_H

#include "KernelBuilder.h"

namespace mlir::fp8 {

/// Two f32 rounded to a vector of two bf16 or f16, the first one first: one
/// instruction of the ALU.
Value roundPair(KernelBuilder &b, Type type, Value first, Value second);

/// An f32 rounded to bf16 or f16, and what it is then in f32, null where that
/// takes a conversion. A conversion of one shares the unit of exp and
/// reciprocals, at a quarter of the rate of one of two. This is the latter,
/// with zeros in the lower half, so that its bits are those of the bf16 in f32.
std::pair<Value, Value> roundAlone(KernelBuilder &b, Type type, Value value);

/// Accumulators, rounded to 16 bits, as words (i32) of a first operand in
/// registers: four for each 16 columns.
SmallVector<Value> packFragment(KernelBuilder &b, Type type,
                                ArrayRef<Value> accumulators);
/// Their numbers, as they were rounded (f32).
SmallVector<Value> unpackFragment(KernelBuilder &b, Type type,
                                  ArrayRef<Value> words);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_ROUNDING_H
