//===- AttentionPowers.h - Powers of scores as an operand -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONPOWERS_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONPOWERS_H

#include "AttentionDropout.h"
#include "AttentionRows.h"

namespace mlir::fp8 {

/// Powers of a thread, as sums of matrices have them, rounded to `type`: pairs
/// of codes, or as they are for types of 16 bits.
SmallVector<Value> roundPowers(KernelBuilder &b, Type type,
                               ArrayRef<Value> powers);
/// The words (i32) of these that a product with values takes from a thread:
/// four for each 32 bytes of keys.
SmallVector<Value> packPowers(KernelBuilder &b, Type type,
                              ArrayRef<Value> rounded);
/// Powers of tile `number` of keys, with 0 for those that are left out; all
/// without dropout.
SmallVector<Value> dropPowers(const AttentionBlock &kernel,
                              const std::optional<AttentionDropout> &dropout,
                              const AttentionTile &tile, Value number,
                              ArrayRef<Value> powers);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONPOWERS_H
