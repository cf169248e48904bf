//===- SplitK.h - Sums over parts of K, by several blocks -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_SPLITK_H
#define FP8_LIB_KERNELS_BLOCKS_SPLITK_H

#include "KernelBuilder.h"

namespace mlir::fp8 {

/// Releases what `threads` threads have written of a block's part, and acquires
/// what blocks before it have: whether this one is the last of `parts` (i32).
/// `counter` is an i32 that is 0 before and after, `flag` a word of shared
/// memory, which is free again once all have passed another barrier.
Value arriveLast(KernelBuilder &b, Value counter, Value parts, Value flag,
                 Value barrierId, Value thread, int64_t threads);

/// Each block leaves its part of a tile in a workspace; the one that comes last
/// adds all parts in their order, so that the result does not depend on which
/// one that was.
class SplitK {
public:
  struct Shape {
    int64_t parts;
    /// Threads of a block that hold accumulators, and registers in each.
    int64_t threads, registers;
    /// Into how many parts of their own these threads divide a block's.
    int64_t divisions = 1;
  };

  /// `flag` is a word of shared memory. The workspace has parts * registers *
  /// threads f32 for each tile, the counters an i32 that is 0 before and after
  /// the kernel.
  SplitK(KernelBuilder &b, Shape shape, Value workspace, Value counters,
         Value flag, Value barrierId)
      : b(b), shape(shape), workspace(workspace), counters(counters),
        flag(flag), barrierId(barrierId) {}

  /// `last` runs in the block that comes last, with the sums: in those threads
  /// that have its first part.
  void reduce(Value tile, Value part, Value thread, ValueRange accumulators,
              llvm::function_ref<void(ValueRange sums)> last);

private:
  KernelBuilder &b;
  Shape shape;
  Value workspace, counters, flag, barrierId;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_SPLITK_H
