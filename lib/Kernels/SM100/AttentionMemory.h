//===- AttentionMemory.h - Where an attention kernel has what ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_ATTENTIONMEMORY_H
#define FP8_LIB_KERNELS_SM100_ATTENTIONMEMORY_H

#include "../Attention/AttentionSpec.h"
#include "../Attention/SwizzledMatrix.h"
#include "SM100Dialect.h"
#include "fp8/GPU/IR/FP8GPUAttrs.h"

namespace mlir::fp8::sm100 {

/// Queries that a warpgroup has: the lanes of tensor memory.
inline constexpr int64_t kQueries = 128;
/// Keys that share a step of the softmax if that is invariant: all invariant
/// operations have room for them.
inline constexpr int64_t kInvariantKeys = 64;
/// Results that a warp stores at a time.
inline constexpr int64_t kStoredRows = 32;

/// Copies of few queries' rows, one in the lanes of each warp.
inline constexpr int64_t kCopies = 4;

/// Where an attention kernel's tiles lie in shared and in tensor memory, and
/// how registers are shared out.
struct AttentionMemory {
  /// A tile of each, and what a warp stores at a time: a box of its results.
  SwizzledMatrix q, k, v, output;
  /// Bytes from the start; of K and V those of stage 0.
  int64_t offsetQ, offsetK, offsetV, offsetOutput;
  int64_t offsetBarriers, offsetAddress, sharedBytes;
  /// For few queries, what warps put together where Q was, and a word that says
  /// which of a tile's blocks came last.
  int64_t offsetScratch, offsetFlag;
  /// Blocks that a multiprocessor runs at a time.
  int64_t resident = 1;
  /// Columns of tensor memory that are allocated. Scores of each half come
  /// first, over which P goes, and then the sums of each.
  int64_t columns;
  int64_t threads;
  /// Null where all threads have as many as there are.
  int64_t softmaxRegisters = 0, otherRegisters = 0;

  /// Fails, with the reason, if there is no room.
  static FailureOr<AttentionMemory> get(const AttentionSpec &spec,
                                        AttentionConfigAttr config,
                                        GPUTargetAttr target,
                                        std::string &reason);
};

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_ATTENTIONMEMORY_H
