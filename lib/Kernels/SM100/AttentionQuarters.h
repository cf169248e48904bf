//===- AttentionQuarters.h - Attention of few queries -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_ATTENTIONQUARTERS_H
#define FP8_LIB_KERNELS_SM100_ATTENTIONQUARTERS_H

#include "../Attention/AttentionParts.h"
#include "../Blocks/Hazards.h"
#include "AttentionContext.h"

namespace mlir::fp8::sm100 {

/// What a warp has of a tile of few queries: all rows, a lane each, and a
/// quarter of each tile of keys. Rows are four times in Q, so that each warp
/// has them in its lanes of tensor memory; P is zeros where keys are another
/// warp's, and sums of P V are the warp's own until the end.
class AttentionQuarters {
public:
  explicit AttentionQuarters(const AttentionContext &kernel);

  /// Quarters are tiles of keys of their own, of threads that are lanes.
  const AttentionBlock &getBlock() const { return block; }
  /// The number of this warp's quarter of tile `number`.
  Value getNumber(Value number) { return b.add(b.mul(number, 4), warp); }
  /// The warp's own of columns that begin at `address`, `count` for each warp.
  Value getOwn(Value address, int64_t count) {
    return b.add(address, b.mul(warp, count));
  }
  AttentionRow getRow(const AttentionTile &tile) {
    return kernel.tiles.getRow(tile, launder(b, kernel.lane));
  }
  /// Copies a tile's queries, and tells the warp that multiplies.
  void loadQueries(const AttentionTile &tile);
  /// Writes zeros over P of other warps' keys, `count` columns of each.
  void clearOthers(Value address, int64_t count);
  /// Puts the sums of all warps together, which are at `ofSums` in tensor
  /// memory, and stores them, or a part. `own` is what the warp knows of its
  /// rows.
  void store(const AttentionTile &tile, const Softmax::Total &own, Value ofSums,
             float logOfP);

  /// What `store` takes of shared memory.
  static constexpr int64_t getScratchBytes() {
    return kTotalBytes + 2 * kGroupBytes;
  }

private:
  /// Columns that warps put together at a time, and bytes of a row of them: 16
  /// more let 8 lanes beside each other store at once.
  static constexpr int64_t kColumns = 16, kRowBytes = 4 * kColumns + 16;
  static constexpr int64_t kGroupBytes = 128 * kRowBytes;
  /// Exponents and sums of all rows of all warps.
  static constexpr int64_t kTotalBytes = 128 * 8;

  /// That of all warps' keys.
  Softmax::Total getTotal(const Softmax::Total &own);
  /// Four columns of 16 of this lane's row, from all warps' `numbers`; `group`
  /// of the 16 there are.
  SmallVector<Value> addWarps(ArrayRef<Value> numbers, int64_t group);
  Value getShared(Value offset) {
    return b.offset(kernel.shared, b.add(offset, kernel.memory.offsetScratch));
  }

  const AttentionContext &kernel;
  KernelBuilder &b;
  AttentionBlock block;
  AttentionParts parts;
  Value warp;
};

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_ATTENTIONQUARTERS_H
