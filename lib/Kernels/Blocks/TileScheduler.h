//===- TileScheduler.h - Which block computes which output tile -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_TILESCHEDULER_H
#define FP8_LIB_KERNELS_BLOCKS_TILESCHEDULER_H

#include "KernelBuilder.h"

namespace mlir::fp8 {

/// An output tile, or with split-K a part of one: its origin, its batch, and
/// the K blocks [kBegin, kEnd) to be summed.
struct Tile {
  Value m, n, batch;
  Value kBegin, kEnd;
  /// Number of the tile among all tiles, and the part of K.
  Value index, split;
};

/// Persistent: block i of g computes work items i, i + g, i + 2g, ..., or a
/// cluster of two blocks pairs of tiles that are neighbours along M or N. Items
/// that run at the same time share their operands in L2: the tiles of `group`
/// rows are walked down M before the next column, the parts of a tile one
/// after another.
class TileScheduler {
public:
  struct Shape {
    int64_t tileM, tileN;
    /// What a cluster of two computes, along M or N; else as above.
    int64_t clusterM, clusterN;
    int64_t group, splitK;
  };

  /// Extents `m`, `n`, `k`, `batch` are i32; `batch` is null without batches.
  TileScheduler(KernelBuilder &b, Shape shape, Value m, Value n, Value k,
                Value batch);

  /// First item of this block or cluster, distance to its next one, and their
  /// number.
  Value getFirst() const { return first; }
  Value getStride() const { return stride; }
  Value getCount() const { return count; }
  /// Blocks of 128 along K.
  Value getKBlocks() const { return kBlocks; }
  /// Number of this block in its cluster, null without clusters.
  Value getRank() const { return rank; }
  /// With clusters, the second tile of a pair may lie outside the result.
  Tile getTile(KernelBuilder &b, Value item) const;

private:
  Shape shape;
  bool batched;
  Value first, stride, count, rank;
  Value tilesM, tilesN, kBlocks;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_TILESCHEDULER_H
