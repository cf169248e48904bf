//===- AttentionTileLoads.h - Attention: rows to shared memory --*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_ATTENTIONTILELOADS_H
#define FP8_LIB_KERNELS_MMA_ATTENTIONTILELOADS_H

#include "AttentionMemory.h"

namespace mlir::fp8::mma {

/// Copies the queries of a tile to shared memory, 16 bytes at a time
/// (cp.async); those beyond the last are zeros.
void copyQueries(const AttentionContext &kernel, const AttentionTile &tile);
/// Copies tile `number` (i32) of keys, and of values, to a stage (i32): those
/// that are not the batch's are zeros.
void copyKeysAndValues(const AttentionContext &kernel,
                       const AttentionTile &tile, Value number, Value stage);

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_ATTENTIONTILELOADS_H
