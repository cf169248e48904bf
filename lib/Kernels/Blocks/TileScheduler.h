//===- TileScheduler.h - Which block computes which output tile -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_TILESCHEDULER_H
#define FP8_LIB_KERNELS_BLOCKS_TILESCHEDULER_H

#include "GroupTable.h"

#include <optional>

namespace mlir::fp8 {

/// An output tile, or with split-K a part of one: its origin, its batch, and
/// the K blocks [kBegin, kEnd) to be summed.
struct Tile {
  Value m, n, batch;
  Value kBegin, kEnd;
  /// Number of the tile among all tiles, and the part of K.
  Value index, split;
  /// Which result it is of, null if there is one.
  Value result;
  /// Where the rows of its group end, null without groups of rows; and where
  /// the K of its group begins, in elements, null where that is at 0.
  Value rowEnd, firstK;
  /// Elements of K in front of the group in its first block; and elements up to
  /// its end in the last one, 0 if that is whole. Null without groups of K.
  Value headK, restK;
};

/// What of a K block is the tile's own, from `begin` up to `end` (i32), with
/// groups of K; and whether some is another group's (i1).
struct OwnK {
  Value begin, end, isCut;

  /// Block `k`, of `blockK` elements.
  static OwnK get(KernelBuilder &b, const Tile &tile, Value k, int64_t blockK);
};

/// Persistent: block i of g computes work items i, i + g, i + 2g, ..., or a
/// cluster all of the neighbouring tiles of such an item. Items
/// that run at the same time share their operands in L2: the tiles of `group`
/// rows are walked down M before the next column, the parts of a tile one
/// after another. Results come one after another, too, and so do groups of rows
/// or of K, of which a tile's number of batch is the number.
class TileScheduler {
public:
  struct Shape {
    int64_t tileM, tileN;
    /// What a cluster computes, as above without.
    int64_t clusterM, clusterN;
    int64_t group, splitK;
    /// Elements of K in a block.
    int64_t blockK;
  };

  /// Extents of one result.
  struct ResultExtents {
    Value m, n;
  };
  /// Extents of all tiles; i32, `batch` is null without batches.
  struct Extents {
    SmallVector<ResultExtents> results;
    Value k, batch;
  };
  /// Which of its cluster's tiles along M and along N a block computes, null
  /// where there is one.
  struct Rank {
    Value m, n;
  };

  /// Ranges of the rows of the only result, or of K, each with a result of
  /// its own.
  struct Groups {
    GroupTable table;
    bool ofRows;
  };

  TileScheduler(KernelBuilder &b, Shape shape, Extents extents, Rank rank,
                std::optional<Groups> groups = std::nullopt);

  /// First item of this block or cluster, distance to its next one, and their
  /// number.
  Value getFirst() const { return first; }
  Value getStride() const { return stride; }
  Value getCount() const { return count; }
  Value getKBlocks() const { return kBlocks; }
  /// With clusters, some tiles of an item may lie outside of the result.
  Tile getTile(KernelBuilder &b, Value item) const;
  const std::optional<Groups> &getGroups() const { return groups; }

private:
  bool hasGroupsOfRows() const { return groups && groups->ofRows; }

  Shape shape;
  std::optional<Groups> groups;
  Value batch;
  Rank rank;
  Value first, stride, count;
  /// Tiles of each result, and the number of the first.
  struct Tiles {
    Value m, n, first;
  };
  SmallVector<Tiles> tiles;
  Value kBlocks;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_TILESCHEDULER_H
