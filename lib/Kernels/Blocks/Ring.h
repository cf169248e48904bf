//===- Ring.h - Ring of shared memory stages between warps ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_RING_H
#define FP8_LIB_KERNELS_BLOCKS_RING_H

#include "KernelBuilder.h"

namespace mlir::fp8 {

/// Where a party is in the ring: a stage, and the parity of the round.
struct RingPosition {
  Value stage, phase;
};

/// Stages that a producer fills and consumers empty, each guarded by a `full`
/// and an `empty` mbarrier (PTX ISA, "Parallel Synchronization and
/// Communication Instructions: mbarrier"). A party waits for the parity that
/// its round has not reached: consumers start with phase 0, the producer with
/// 1, which passes on a fresh barrier.
class Ring {
public:
  /// Blocks of a cluster in two directions, and which of them this one is; the
  /// number of a block is rankOfRows + rows * rankOfCols.
  struct Cluster {
    int64_t rows, cols;
    /// Null where there is one.
    Value rankOfRows, rankOfCols;
    /// Whether the first of the blocks that share the rows, or the columns,
    /// brings them for all; otherwise each brings a part.
    bool wholeRows = false, wholeCols = false;

    /// Those in either direction from a block, itself among them.
    int64_t getNeighbours() const { return rows + cols - 1; }
  };

  /// `base` is the start of shared memory; the barriers lie at
  /// `barrierOffset`, all full ones first. The producers of neighbours in a
  /// cluster fill each other's stages, so that a consumer gives its stage back
  /// to all that fill it, and to no other. One that does not fill it would not
  /// hold back the next round, whose arrivals it would take for this one's.
  Ring(KernelBuilder &b, Value base, int64_t barrierOffset, int64_t stages,
       Cluster cluster)
      : b(b), base(base), barrierOffset(barrierOffset), stages(stages),
        cluster(cluster) {}

  /// Initializes the barriers: one thread. A stage is full after
  /// `fullArrivals` and their bytes, empty after `emptyArrivals` of each block
  /// that gives it back.
  void initialize(int64_t fullArrivals, int64_t emptyArrivals) {
    initialize(b.i32(fullArrivals), emptyArrivals);
  }
  /// The same with a number (i32) that differs between blocks.
  void initialize(Value fullArrivals, int64_t emptyArrivals);

  Value getFullBarrier(Value stage);
  Value getEmptyBarrier(Value stage);
  void waitFull(RingPosition position);
  /// Whether the stage is full (i1), asked before it is needed, so that the
  /// answer is there by then; false is no more than a hint.
  Value isFull(RingPosition position);
  /// Waits unless `ready` (i1), what isFull said of that position, is set.
  void waitFull(RingPosition position, Value ready);
  void waitEmpty(RingPosition position);
  /// Announces `bytes` of bulk copies and arrives at the full barrier.
  void expectBytes(Value stage, Value bytes);
  /// One lane of the converged warp gives the stage back.
  void release(Value stage, Value lane);
  RingPosition advance(RingPosition position);
  /// The position `count` stages (i32) further on.
  RingPosition skip(RingPosition position, Value count);

private:
  void wait(Value barrier, Value phase);
  /// The block that is number `i` (i32) of this one's neighbours.
  Value getNeighbour(Value i);
  /// Whether that one fills this one's stages (i1).
  Value isFilledBy(Value i);
  /// How many blocks this one's producer fills stages of (i32).
  Value getNumFilled();

  KernelBuilder &b;
  Value base;
  int64_t barrierOffset, stages;
  Cluster cluster;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_RING_H
