//===- AttentionContext.h - What parts of an attention share ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONCONTEXT_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONCONTEXT_H

#include "../Attention/AttentionBlock.h"
#include "AttentionMemory.h"

namespace mlir::fp8::sm90 {

/// What is computed and how, where it lies, and which thread this is.
struct AttentionContext : AttentionBlock {
  AttentionConfigAttr config;
  const AttentionMemory &memory;
  /// Tiles of queries, a ring of one, and of keys and values; with values that
  /// are transposed on their way, those before and after that.
  Ring q, k, v, transposedV;
  /// Local memory for the sums of chunks of keys, null where there are none.
  Value totals;

  int64_t getConsumerWarps() const { return 4 * config.getConsumers(); }
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
  /// Keys of a tile that are its batch's: from `begin` up to `end`, null where
  /// these are the tile's; both may be beyond it.
  struct Keys {
    Value begin, end;
    explicit operator bool() const { return begin || end; }
  };
  /// Waits for a tile of values, and for room; gives its stage back.
  void transpose(RingPosition from, const Keys &keys);

private:
  /// 16 columns of all keys; those that are not of `keys` become 0.
  void transposeColumns(Value source, Value target, Value columns,
                        const Keys &keys);
  void transposeTile(Value source, Value target, const Keys &keys);
  /// Which bytes of the words of a lane's keys are of `keys`, of 16 that begin
  /// at `first`.
  Value getVisibleBytes(int64_t first, const Keys &keys);

  const AttentionContext &kernel;
  KernelBuilder &b;
  Ring source, target;
  Value warp;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONCONTEXT_H
