//===- AttentionContext.h - What parts of an attention share ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_ATTENTIONCONTEXT_H
#define FP8_LIB_KERNELS_SM100_ATTENTIONCONTEXT_H

#include "../Attention/AttentionBlock.h"
#include "AttentionMemory.h"

namespace mlir::fp8::sm100 {

/// What is computed and how, where it lies, and which thread this is.
struct AttentionContext : AttentionBlock {
  AttentionConfigAttr config;
  const AttentionMemory &memory;
  /// Tiles of queries, a ring of one, of keys and of values.
  Ring q, k, v;
  /// A stage each half: scores, which are given back as P, beside sums
  /// that are P's; and sums that are complete, which nobody gives back.
  Ring scores, sums;
  /// Address of the block's columns in tensor memory, once it has them.
  Value columns;

  int64_t getSoftmaxWarps() const { return 4 * config.getHalves(); }
  /// The warps behind those: one copies, and one multiplies and has tensor
  /// memory.
  int64_t getLoadWarp() const { return getSoftmaxWarps(); }
  int64_t getMultiplyWarp() const { return getSoftmaxWarps() + 1; }
  /// Where the scores of half `half` (i32) are in tensor memory, and its sums.
  Value getScores(Value half) const {
    return b.add(columns, b.mul(half, tileK));
  }
  Value getSums(Value half) const {
    return b.add(b.add(columns, b.mul(half, spec.headDimOfV)),
                 config.getHalves() * tileK);
  }
};

/// The warp that copies queries, keys and values.
void buildAttentionLoader(const AttentionContext &kernel);
/// The warp that multiplies.
void buildAttentionMultiplier(const AttentionContext &kernel);
/// The warpgroups that exponentiate, and scale and store sums.
void buildAttentionSoftmax(const AttentionContext &kernel);

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_ATTENTIONCONTEXT_H
