//===- BulkCopy.h - Bulk tensor copies (TMA) --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_BULKCOPY_H
#define FP8_LIB_KERNELS_BLOCKS_BULKCOPY_H

#include "KernelBuilder.h"

namespace mlir::fp8 {

/// Copies the box at `coordinates` (innermost first) of `map` to `shared`, and
/// completes its bytes at `barrier`. What lies outside of the tensor arrives
/// as zeros and counts, so that the bytes of a box are always the same.
void bulkLoad(KernelBuilder &b, Value map, Value shared, Value barrier,
              ValueRange coordinates);

/// Copies the box to the same place in those blocks of the cluster whose bits
/// are set in `blocks` (i16), and completes its bytes at the barrier of each.
void bulkLoadToCluster(KernelBuilder &b, Value map, Value shared, Value barrier,
                       ValueRange coordinates, Value blocks);

/// As the first, but `barrier` (shared::cluster) may be that of the other one
/// of two blocks whose tensor cores multiply together.
void bulkLoadOfPair(KernelBuilder &b, Value map, Value shared, Value barrier,
                    ValueRange coordinates);

/// Copies `shared` to the box at `coordinates` of `map`, without what lies
/// outside of the tensor, and commits it as a group.
void bulkStore(KernelBuilder &b, Value map, Value shared,
               ValueRange coordinates);

/// Waits until at most `pending` of this thread's stores still read shared
/// memory.
void waitForReads(KernelBuilder &b, int64_t pending);
/// Waits until all of this thread's stores have been written.
void waitForWrites(KernelBuilder &b);

/// Makes ordinary writes to shared memory visible to bulk copies; before a
/// barrier, in each thread that wrote (PTX ISA, "Async proxy").
void fenceForBulkCopies(KernelBuilder &b);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_BULKCOPY_H
