//===- AttentionBlock.h - What parts of an attention share ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONBLOCK_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONBLOCK_H

#include "../Blocks/Ring.h"
#include "AttentionTiles.h"
#include "SwizzledMatrix.h"

namespace mlir::fp8 {

/// What is computed, and which thread this is, on any GPU.
struct AttentionBlock {
  KernelBuilder &b;
  const AttentionSpec &spec;
  const llvm::StringMap<Value> &params;
  const AttentionTiles &tiles;
  /// Keys of a tile.
  int64_t tileK;
  /// Dynamic shared memory, and its address (i32).
  Value shared, base;
  Value thread, warp, lane;

  Value getParam(StringRef name) const { return params.lookup(name); }
  /// Coordinates of a bulk copy, the innermost first, with `sequence` in the
  /// sequence.
  SmallVector<Value> getCoordinates(Value column, Value sequence, Value head,
                                    Value batch) const {
    if (spec.layout == fp8::AttentionLayout::BSHD)
      return {column, head, sequence, batch};
    return {column, sequence, head, batch};
  }
  /// Keys of tile `number` that there are (i32), negative beyond the last, and
  /// maybe more than it has.
  Value getKeysThere(const AttentionTile &tile, Value number) const {
    return b.sub(tile.keys, b.mul(number, tileK));
  }
  /// Those of the same tile that are before the batch's first key, and maybe
  /// more than it has; null where that is 0.
  Value getKeysBefore(const AttentionTile &tile, Value number) const {
    return tile.start ? b.sub(tile.start, b.mul(number, tileK)) : Value();
  }
  /// Number `stage` of tiles of `matrix` that begin at `offset`.
  Value getPlace(const SwizzledMatrix &matrix, int64_t offset,
                 Value stage) const {
    return b.add(b.mul(stage, llvm::alignTo(matrix.getBytes(), 1024)), offset);
  }
};

/// At the start of the kernel.
AttentionBlock getBlock(KernelBuilder &b, const AttentionSpec &spec,
                        const llvm::StringMap<Value> &params,
                        const AttentionTiles &tiles, int64_t tileK);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONBLOCK_H
