//===- AttentionContext.h - What parts of an attention share ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONCONTEXT_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONCONTEXT_H

#include "../Blocks/Ring.h"
#include "AttentionTiles.h"

namespace mlir::fp8::sm90 {

/// What is computed and how, where it lies, and which thread this is.
struct AttentionContext {
  KernelBuilder &b;
  const AttentionSpec &spec;
  AttentionConfigAttr config;
  const AttentionMemory &memory;
  const llvm::StringMap<Value> &params;
  const AttentionTiles &tiles;
  /// Tiles of queries, a ring of one, and of keys and values; with values that
  /// are transposed on their way, those before and after that.
  Ring q, k, v, transposedV;
  /// Dynamic shared memory, and its address (i32).
  Value shared, base;
  Value thread, warp, lane;

  Value getParam(StringRef name) const { return params.lookup(name); }
  int64_t getConsumerWarps() const { return 4 * config.getConsumers(); }
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
    return b.sub(tile.keys, b.mul(number, config.getTileK()));
  }
  /// Number `stage` of tiles of `matrix` that begin at `offset`.
  Value getPlace(const SharedMatrix &matrix, int64_t offset,
                 Value stage) const {
    return b.add(b.mul(stage, llvm::alignTo(matrix.getBytes(), 1024)), offset);
  }
};

/// The warpgroup that copies queries, keys and values, with one lane, and puts
/// the keys side by side in values of 8 bits, with all.
void buildAttentionProducer(const AttentionContext &kernel);
/// The warpgroups that multiply.
void buildAttentionConsumer(const AttentionContext &kernel);

/// Warps of the producers' warpgroup, all of which transpose.
inline constexpr int64_t kProducerWarps = 4;

/// Puts the keys of tiles of values side by side.
class ValueTranspose {
public:
  /// This is warp `warp` (i32) of the producers.
  ValueTranspose(const AttentionContext &kernel, Value warp);
  /// Waits for a tile of values, and for room; gives its stage back. There are
  /// `there` keys of it, if that is not null.
  void transpose(RingPosition from, Value there);

private:
  /// 16 columns of all keys; those beyond `there` become 0.
  void transposeColumns(Value source, Value target, Value columns, Value there);
  void transposeTile(Value source, Value target, Value there);
  /// Which bytes of the words of a lane's keys are before `there`, of 16 keys
  /// that begin at `first`.
  Value getVisibleBytes(int64_t first, Value there);

  const AttentionContext &kernel;
  KernelBuilder &b;
  Ring source, target;
  Value warp;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONCONTEXT_H
