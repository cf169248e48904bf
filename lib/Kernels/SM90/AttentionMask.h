//===- AttentionMask.h - Keys that a mask hides -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONMASK_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONMASK_H

#include "AttentionContext.h"

namespace mlir::fp8::sm90 {

/// This thread's scores of tile `number` of keys, as wgmma's accumulators: -inf
/// where the mask says that a row's query does not see a key.
SmallVector<Value> hideByMask(const AttentionContext &kernel,
                              const AttentionTile &tile, Value number,
                              ArrayRef<Value> scores);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONMASK_H
