//===- AttentionBackwardTiles.h - Which block has which keys ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDTILES_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDTILES_H

#include "../Blocks/Ring.h"
#include "AttentionBackwardSpec.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {

/// Keys that a tile of queries sees, from the first to behind the last; i32.
/// With ranges, some in between may be seen by none.
struct BackwardKeys {
  Value begin, end;
};

/// A step of a block: a tile of queries of a head of Q; i32.
struct BackwardStep {
  Value head, tile;
};

/// The keys of this block, and the queries that see them: those of all heads of
/// Q that share the keys. All i32, with a sign.
///
/// In any order a block walks head by head, each head's queries from a tile of
/// its own on, around the end: blocks of the same head that add to the same
/// tile at the same time are held up.
///
/// Where sums have an order it begins with the last tile: blocks of the same
/// head that begin at the same time then meet at a tile that all of them see,
/// and each waits for the one before it only as long as that takes to add its
/// part. From the first tile on, causal, one would wait for all steps of the
/// others before its own.
///
/// Causal, head by head, a block with fewer tiles would be early at the next
/// head, and wait there for those that have more: all heads' queries of a tile
/// come first, but for numbers of 16 bits and 128 columns.
class AttentionBackwardTiles {
public:
  /// Queries and keys of a tile, and the warps of a block.
  struct Extents {
    int64_t tileQ, tileK, warps;
  };
  AttentionBackwardTiles(KernelBuilder &b, const AttentionBackwardSpec &spec,
                         const Extents &extents,
                         const llvm::StringMap<Value> &params);
  /// What block `block` (i32) has: all others are for after it, and, with
  /// ranges of keys, after `findTiles`.
  void begin(Value block);
  /// Looks at the ranges of all queries: all warps do, which tell each other
  /// by `found`, in shared memory; this is `warp` (i32).
  void findTiles(Value found, Value warp);

  Value batch, headOfK;
  /// The first key.
  Value key;
  /// Tiles of queries of each head that see some of the keys, and steps.
  Value first, end, steps;
  /// The tile that a walk begins with.
  Value start;
  Value queries, keys;
  /// What leads from a query's number to its own key's.
  Value diagonal;
  /// Tiles of queries of a head, and the number of the block among those that
  /// have keys of the same head.
  Value tilesOfHead, number, numbers;

  BackwardStep getFirst() const;
  BackwardStep advance(BackwardStep step) const;
  using StepBody = llvm::function_ref<void(BackwardStep, RingPosition)>;
  /// All steps, with a position of a ring that begins with `phase`.
  void forEachStep(Ring ring, int64_t phase, StepBody body) const;
  /// The number of a step's queries among all (i32).
  Value getNumber(BackwardStep step) const;
  /// What tile `tile` (i32) of queries sees; with ranges the whole warp asks.
  BackwardKeys getKeysOf(Value tile) const;
  /// Blocks that see a tile of queries (i32).
  Value countBlocks(BackwardKeys ofTile) const;
  /// How many blocks that see it have keys before this one's (i32), which does.
  Value countBlocksBefore(BackwardKeys ofTile) const;
  /// Whether this block sees a tile of queries (i1). Without ranges it sees
  /// those of all its steps.
  Value sees(BackwardKeys ofTile) const;
  /// The keys that query `query` (i32) sees, by its range and the window; none
  /// are from `kNone` to 0.
  BackwardKeys loadRange(Value query) const;
  static constexpr int64_t kNone = int64_t(1) << 30;
  /// Whether some of the keys are not seen by some of the queries, or not there
  /// (i1); not for ranges.
  Value hides(BackwardStep step) const;

private:
  /// The head of K of block `block`, and its `number`. If all keys are seen,
  /// heads come in groups, so that what one block has added to dQ is in L2 when
  /// the next one adds to it.
  Value findHead(Value block);
  /// Steps, once there are `first` and `end`.
  void setSteps();
  BackwardKeys getRangeOf(Value tile) const;

  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  Value batches, keyRanges;
  int64_t tileQ, tileK, warps;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDTILES_H
