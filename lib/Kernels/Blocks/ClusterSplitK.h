//===- ClusterSplitK.h - Sums over parts of K, in a cluster -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_CLUSTERSPLITK_H
#define FP8_LIB_KERNELS_BLOCKS_CLUSTERSPLITK_H

#include "KernelBuilder.h"

namespace mlir::fp8 {

/// The blocks of a cluster have a part of K each, or several; the first one
/// adds them all up in their order, from its shared memory. A tile that goes
/// through memory (SplitK) waits for two fences and an atomic operation there.
class ClusterSplitK {
public:
  struct Shape {
    /// Blocks of the cluster, and into how many parts of their own the threads
    /// of a block divide what is its.
    int64_t blocks, divisions;
    /// Threads of a block that hold accumulators, and registers in each.
    int64_t threads, registers;

    int64_t getParts() const { return blocks * divisions; }
    /// Threads that hold a part.
    int64_t getThreads() const { return threads / divisions; }
    /// Bytes of shared memory: a slot for each part but the first.
    int64_t getBytes() const {
      return (getParts() - 1) * getThreads() * registers * 4;
    }
  };
  /// Bytes of the barriers.
  static constexpr int64_t kBarrierBytes = 16;

  /// `slots` and `barriers` are places in shared memory, `rank` the number of
  /// the block in its cluster.
  ClusterSplitK(KernelBuilder &b, Shape shape, Value slots, Value barriers,
                Value rank)
      : b(b), shape(shape), slots(slots), barriers(barriers), rank(rank) {}

  /// One thread, before the cluster meets.
  void initialize();
  /// `first` runs in the threads that have the first part, with the sums.
  /// `phase` (i32) is 0 for a block's first tile, and changes with each one.
  void reduce(Value phase, Value thread, ValueRange accumulators,
              llvm::function_ref<void(ValueRange sums)> first);

private:
  /// Whose parts are there, in the first block; and whose slots are free again,
  /// in each.
  Value getFull() const { return barriers; }
  Value getEmpty() const { return b.offset(barriers, b.i32(8)); }
  /// Where the first value of a thread is in slot `number` (i32), and from
  /// there the `i`-th one.
  Value getSlot(Value number, Value own) const;
  Value getPlace(Value slot, int64_t i) const;
  /// The same place in block `block` (i32) of the cluster.
  Value mapTo(Value place, Value block) const;
  void wait(Value barrier, Value phase) const;

  KernelBuilder &b;
  Shape shape;
  Value slots, barriers, rank;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_CLUSTERSPLITK_H
