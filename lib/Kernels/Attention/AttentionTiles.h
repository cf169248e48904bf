//===- AttentionTiles.h - Which block computes which queries ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONTILES_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONTILES_H

#include "../Blocks/KernelBuilder.h"
#include "AttentionSpec.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {

/// Queries of a head, or of some that share keys, and the tiles of keys that
/// these see; i32, with a sign.
struct AttentionTile {
  /// The first head and the first query of it; heads that there are of those
  /// that a tile has room for.
  Value batch, head, headOfK, query, headsThere;
  /// Keys of the batch, and what leads from a query's number to its own key's.
  Value keys, diagonal;
  /// The batch's first key; null where that is 0.
  Value start;
  /// The same if the operation is invariant: keys have numbers from there on,
  /// and `start` is null.
  Value origin;
  /// Tiles of keys, walked from `end` down to `begin`, at least one; those of
  /// [fullBegin, fullEnd) are seen by all queries as a whole.
  Value begin, fullBegin, fullEnd, end;
  /// Blocks that share the keys of few queries, the first of these, and whether
  /// it has some of the tile before (i1).
  Value parts, firstBlock, isContinued;
  /// In place of the last two, if the operation is invariant: the number of the
  /// tile of queries, and which chunk of keys this is.
  Value number, chunk;
};

/// What a row of a tile is; of one beyond the last, the tile's first row.
struct AttentionRow {
  Value query, head, isThere;
};

/// The tiles of a block, in turn: neighbours in time read the same keys and
/// values, as many heads at a time as L2 has room for, and tiles that see the
/// most keys come first, so that blocks end together.
class AttentionTiles {
public:
  /// What a kernel's config says of them.
  struct Shape {
    /// Queries of a tile, and keys.
    int64_t queries, keys;
    /// Bytes of keys and values that stay in L2 while blocks read them.
    int64_t bytesInL2;
    /// Heads of Q that share a tile of few queries, and tiles of keys that a
    /// block has at least of these: 0 where blocks have whole tiles.
    int64_t heads = 1, splitTiles = 0;
  };

  AttentionTiles(KernelBuilder &b, const AttentionSpec &spec,
                 const Shape &shape, const llvm::StringMap<Value> &params);

  Value getFirst() const { return first; }
  Value getStride() const { return stride; }
  Value getCount() const { return count; }
  AttentionTile getTile(Value item) const;
  /// Row `row` (i32) of a tile.
  AttentionRow getRow(const AttentionTile &tile, Value row) const;
  /// The key of a row's own query.
  Value getOwnKey(const AttentionTile &tile, Value row) const;
  /// The number among the blocks that share the tile's keys of the one that
  /// runs this, and that of what block `part` leaves (i32).
  Value getOwnPart(const AttentionTile &tile) const {
    return chunks ? tile.chunk : b.sub(block, tile.firstBlock);
  }
  Value getPlace(const AttentionTile &tile, Value part) const;
  /// The number of the tile's counter.
  Value getCounter(const AttentionTile &tile) const {
    return chunks ? tile.number : getNumberOf(tile.firstBlock);
  }
  /// The chunks that a tile's keys are of: the first, and one beyond the last.
  std::pair<Value, Value> getChunks(const AttentionTile &tile) const;
  /// Leaves a tile the keys of a chunk, or some that are masked if it sees none
  /// of these.
  void limitToChunk(AttentionTile &tile, Value chunk) const;
  Value getQueries() const { return queries; }
  /// The first key that row `row` (i32) sees of its range, and the one behind
  /// the last; nothing without ranges.
  std::optional<std::pair<Value, Value>> getRange(const AttentionTile &tile,
                                                  Value row) const;

  /// Tiles for the heads of Q that share one of K.
  static int64_t getTilesOfGroup(const AttentionSpec &spec, int64_t tileHeads);
  /// Blocks that share keys, at most: two for each multiprocessor of a Hopper
  /// die. Each leaves up to two parts: of its first tile and of its last.
  static constexpr int64_t kMaxBlocks = 288;
  /// Keys whose softmax is computed by itself in an invariant operation. More
  /// would leave a GPU idle in decoding; fewer end more often, which takes
  /// prompts some 7 % of attention's time with these.
  static constexpr int64_t kChunkKeys = 960;

private:
  /// Gives each block as many tiles of keys, one after the other, of one tile
  /// of queries after the other.
  void shareKeys(int64_t leastTiles);
  /// Heads that share keys, and all queries of these.
  AttentionTile getTileOfGroup(Value item) const;
  /// A key's number from the tile's origin on.
  Value fromOrigin(const AttentionTile &tile, Value key) const {
    return tile.origin ? b.sub(key, tile.origin) : key;
  }
  Value getNumberOf(Value blockOfRow) const {
    return b.add(b.mul(blockOfRow, rows), row);
  }
  /// Numbers of the tile's batch, if it has its own.
  void setKeys(AttentionTile &tile, Value keys) const;
  Value getKeysOf(Value batch) const;
  void setStart(AttentionTile &tile) const;
  /// The keys that the tile sees, as tiles.
  void setRange(AttentionTile &tile) const;
  /// The same with the ranges of its queries.
  void limitToRanges(AttentionTile &tile) const;
  std::pair<Value, Value> loadRange(Value batch, Value query) const;

  KernelBuilder &b;
  const AttentionSpec &spec;
  /// Queries of a tile, and heads.
  int64_t tileQ, tileK, tileHeads;
  Value queries, keys, keyLengths, keyStarts, keyRanges;
  Value first, stride, count;
  /// Tiles of a head, all heads, and those that are walked together.
  Value tilesOfHead, heads, together;
  /// Blocks of few queries are in so many rows, each of which has every so
  /// many-th tile.
  Value rows;
  /// This block in its row; tiles of keys of each block, and of each tile of
  /// queries; the block's first and the one beyond its last.
  Value row, block, share, tilesOfKeys, begin, end;
  /// Chunks of keys of each tile of few queries in an invariant operation, else
  /// null.
  Value chunks;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONTILES_H
