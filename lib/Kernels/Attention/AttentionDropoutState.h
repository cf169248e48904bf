//===- AttentionDropoutState.h - Dropout of one share -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONDROPOUTSTATE_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONDROPOUTSTATE_H

#include "fp8/IR/Dropout.h"

namespace mlir::fp8 {

/// Whether (i1) the share of a key is kept, by a tensor of the seed and the
/// offset; `head` is among those of all batches, and all three are indices.
Value buildIsKept(OpBuilder &builder, Location loc, Value state,
                  int64_t threshold, Value head, Value query, Value key);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONDROPOUTSTATE_H
