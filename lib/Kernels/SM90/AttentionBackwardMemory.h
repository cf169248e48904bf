//===- AttentionBackwardMemory.h - Its shared memory ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDMEMORY_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDMEMORY_H

#include "../Attention/AttentionBackwardSpec.h"
#include "AttentionMemory.h"

namespace mlir::fp8::sm90 {

/// Where the tiles of a kernel of attention's gradients lie in shared memory.
/// Gradients of keys and of values go where these were.
struct AttentionBackwardMemory {
  /// Numbers of the gradient's type; `scores` has the gradients of a step's
  /// scores, a row for each key.
  SharedMatrix q, k, v, grad, scores;
  /// The codes of the first product, where operands are such; those of V are
  /// there until they are numbers.
  SharedMatrix codesOfQ, codesOfK, codesOfV;
  /// Bytes from the start; of what comes in stages those of stage 0.
  int64_t offsetQ, offsetK, offsetV, offsetGrad, offsetScores;
  int64_t offsetCodesOfQ = 0, offsetCodesOfK = 0, offsetCodesOfV = 0;
  /// A stage of these is two numbers (f32) of each query: the logarithm of its
  /// sum as an exponent of 2, and `delta`, both negative. With ranges of keys
  /// two bytes of each query follow, which of the block's keys is the first
  /// that it sees and which is behind the last, and then four numbers (i32) of
  /// all queries: the least first key and the largest last one, and the
  /// reverse.
  int64_t offsetRows, bytesOfRows;
  /// Sums of a tile of dQ (f32), for each warp that ends tiles.
  int64_t offsetSums, bytesOfSums;
  int64_t offsetBarriers;
  /// The block's ticket (i32), where sums have an order.
  int64_t offsetTicket;
  /// With ranges of keys, the tiles of queries that each warp has found.
  int64_t offsetFound;
  int64_t sharedBytes;

  /// Warpgroups that multiply, each of 64 keys.
  static constexpr int64_t kConsumers = 2;
  static constexpr int64_t kThreads = 128 * (kConsumers + 1);
  static constexpr int64_t kWarps = kThreads / 32;
  static constexpr int64_t kProducerRegisters = 40, kConsumerRegisters = 232;
  /// Stages of `scores`, and steps whose sums for dQ may be on their way.
  static constexpr int64_t kScoreStages = 2, kAddStages = 4;

  bool hasCodes() const { return codesOfQ.rows != 0; }
  /// Warps that end tiles of dQ: with codes the other one converts.
  int64_t getEnders() const { return hasCodes() ? 1 : 2; }

  /// Fails, with the reason, if there is no room.
  static FailureOr<AttentionBackwardMemory>
  get(const AttentionBackwardSpec &spec, AttentionConfigAttr config,
      GPUTargetAttr target, std::string &reason);
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDMEMORY_H
