//===- AttentionBackwardMemory.h - Where gradients lie ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_ATTENTIONBACKWARDMEMORY_H
#define FP8_LIB_KERNELS_SM100_ATTENTIONBACKWARDMEMORY_H

#include "../Attention/AttentionBackwardSpec.h"
#include "../Attention/SwizzledMatrix.h"
#include "SM100Dialect.h"
#include "fp8/GPU/IR/FP8GPUAttrs.h"

namespace mlir::fp8::sm100 {

/// Where a kernel of attention's gradients has its tiles.
struct AttentionBackwardMemory {
  /// `scores` has the gradients of a step's scores, a row for each key.
  SwizzledMatrix q, k, v, grad, scores;
  /// Bytes from the start; of what comes in stages those of stage 0.
  int64_t offsetQ, offsetK, offsetV, offsetGrad, offsetScores;
  int64_t offsetRows, bytesOfRows;
  int64_t offsetBarriers, offsetTicket, offsetAddress, offsetFound, sharedBytes;
  /// Columns of tensor memory: scores, over which P goes; products of V and
  /// the result's gradient, over which a step's part of dQ goes; dV; and dK.
  int64_t columnOfProducts, columnOfV, columnOfK, columns;

  /// Queries of a step and keys of a block: the lanes of tensor memory.
  static constexpr int64_t kRows = 128;
  /// Warps that make gradients of scores, half of the queries each warpgroup,
  /// and those that add to dQ.
  static constexpr int64_t kScoreWarps = 8, kAddWarps = 4;
  /// The warps behind those: one copies, one multiplies, one has the rows'
  /// numbers, and one gives turns.
  static constexpr int64_t kCopies = kScoreWarps + kAddWarps,
                           kMultiplies = kCopies + 1, kReads = kCopies + 2,
                           kTurns = kCopies + 3, kWarps = kCopies + 4;
  static constexpr int64_t kThreads = 32 * kWarps;
  /// Registers of a thread of either, and of the others; all have the rest of
  /// 512.
  static constexpr int64_t kScoreRegisters = 160, kAddRegisters = 104,
                           kOtherRegisters = 88;
  /// Steps whose sums for dQ may have a turn.
  static constexpr int64_t kAddStages = 2;

  /// Fails, with the reason, if there is no room.
  static FailureOr<AttentionBackwardMemory>
  get(const AttentionBackwardSpec &spec, AttentionConfigAttr config,
      GPUTargetAttr target, std::string &reason);
};

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_ATTENTIONBACKWARDMEMORY_H
