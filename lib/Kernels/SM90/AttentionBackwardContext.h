//===- AttentionBackwardContext.h - What its parts share --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDCONTEXT_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDCONTEXT_H

#include "../Attention/AttentionBackwardBlock.h"
#include "AttentionBackwardMemory.h"

namespace mlir::fp8::sm90 {

/// What is computed and how, where it lies, and which thread this is.
struct AttentionBackwardContext : AttentionBackwardBlock {
  AttentionConfigAttr config;
  const AttentionBackwardMemory &memory;
  /// Numbers of K and of V, two stages that are filled once, and their codes.
  Ring keys, codesOfKeys;
  /// A step's: numbers of Q with what is known of its rows, codes of Q, and
  /// the result's gradient.
  Ring queries, codesOfQueries, grads;
  /// Gradients of scores: the warps that multiply fill a stage by giving it
  /// back; and sums that are on their way to dQ.
  Ring scores, added;

  static constexpr int64_t kConsumers = AttentionBackwardMemory::kConsumers;
  static constexpr int64_t kConsumerWarps = 4 * kConsumers;
  /// Warps of the other warpgroup: the first copies; the second has the rows'
  /// numbers; the third ends tiles of dQ. In the fourth, and in the second as
  /// well, codes become numbers; without codes the fourth ends every other
  /// tile.
  static constexpr int64_t kCopies = 0, kRows = 1, kEnds = 2, kConverts = 3;

  /// Registers of a thread's part of a tile of dQ.
  int64_t getAddedRegisters() const {
    return config.getTileQ() * spec.headDim / (128 * kConsumers);
  }
  /// Where four of these are, chunk `chunk` (i32), of thread `thread` (i32) of
  /// warpgroup `group` (i32): what a warp adds at a time lies side by side.
  Value getSums(Value tile, Value group, Value chunk, Value thread) const {
    int64_t chunks = getAddedRegisters() / 4;
    Value place = b.add(b.mul(b.widen(tile), kConsumers), b.widen(group));
    place = b.add(b.mul(place, chunks), b.widen(chunk));
    place = b.add(b.mul(place, 128), b.widen(thread));
    return b.element(getParam("sums.ptr"), b.mul(place, 4), b.getF32Type());
  }
};

/// The warpgroup that copies and converts, and ends tiles of dQ.
void buildAttentionBackwardProducer(const AttentionBackwardContext &kernel);
/// A warp of it that ends tiles, number `part` of these.
void buildEndsOfTiles(const AttentionBackwardContext &kernel, int64_t part);
/// The warpgroups that multiply.
void buildAttentionBackwardConsumer(const AttentionBackwardContext &kernel);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDCONTEXT_H
