//===- AttentionProducts.h - Products of attention's tiles ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONPRODUCTS_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONPRODUCTS_H

#include "../Blocks/Rounding.h"
#include "AttentionMemory.h"

namespace mlir::fp8::sm90 {

/// `descriptor`, of the first of some tiles of `matrix`, moved by `stage` tiles
/// (i32, null for none) and a number of bytes.
Value moveDescriptor(KernelBuilder &b, Value descriptor, Value stage,
                     const SharedMatrix &matrix, int64_t bytes);

/// The registers of an accumulator, and what has these.
SmallVector<Value> getRegisters(KernelBuilder &b, Value accumulator);
Value makeAccumulator(KernelBuilder &b, ArrayRef<Value> registers);

/// Writes words of a fragment of a warp, whose rows begin with `row` (i32), to
/// a matrix at byte `place` (i32) of `shared`.
void storeFragment(KernelBuilder &b, ArrayRef<Value> words,
                   const SharedMatrix &matrix, Value shared, Value place,
                   Value row, Value lane);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONPRODUCTS_H
