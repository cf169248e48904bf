//===- AttentionTiles.h - Which block computes which queries ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONTILES_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONTILES_H

#include "AttentionMemory.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8::sm90 {

/// Queries of a head, and the tiles of keys that these see; i32, with a sign.
struct AttentionTile {
  Value batch, head, headOfK, query;
  /// Tiles of keys, walked from `end` down to `begin`, at least one; those of
  /// [fullBegin, fullEnd) are seen by all queries as a whole.
  Value begin, fullBegin, fullEnd, end;
};

/// The tiles of a block, in turn: neighbours in time read the same keys and
/// values, as many heads at a time as L2 has room for, and tiles that see the
/// most keys come first, so that blocks end together.
class AttentionTiles {
public:
  AttentionTiles(KernelBuilder &b, const AttentionSpec &spec,
                 AttentionConfigAttr config,
                 const llvm::StringMap<Value> &params);

  Value getFirst() const { return first; }
  Value getStride() const { return stride; }
  Value getCount() const { return count; }
  AttentionTile getTile(Value item) const;
  Value getQueries() const { return queries; }
  Value getKeys() const { return keys; }
  /// From a query's number to that of its own key.
  Value getDiagonal() const { return diagonal; }

private:
  /// The keys that the tile sees, as tiles.
  void setRange(AttentionTile &tile) const;

  KernelBuilder &b;
  const AttentionSpec &spec;
  int64_t tileQ, tileK;
  Value queries, keys, diagonal;
  Value first, stride, count;
  /// Tiles of a head, all heads, and those that are walked together.
  Value tilesOfHead, heads, together;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONTILES_H
