//===- AttentionBackwardMemory.h - Its shared memory ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_ATTENTIONBACKWARDMEMORY_H
#define FP8_LIB_KERNELS_MMA_ATTENTIONBACKWARDMEMORY_H

#include "../Attention/AttentionBackwardSpec.h"
#include "../Attention/SwizzledMatrix.h"
#include "MmaDialect.h"

namespace mlir::fp8::mma {

/// What a block sums for its rows, which are keys or queries; the others are
/// columns of its scores.
struct BackwardPart {
  bool ofKeys;
  /// The product of gradients of scores and columns of Q or K, and that of
  /// powers and columns of the gradient.
  bool sumsScores, sumsPowers;
};

/// Where the tiles of a kernel of attention's gradients lie in shared memory,
/// and which parts it has. All are numbers of the gradient's type.
struct AttentionBackwardMemory {
  /// Rows of a block, and a stage of columns: of Q or K, and of the gradient or
  /// V. Which of both is which depends on the part.
  SwizzledMatrix rows[2], columns[2];
  /// Bytes from the start; of columns those of stage 0.
  int64_t offsetRows[2], offsetColumns[2];
  /// A stage has, of each column that is a query, the logarithm of its sum and
  /// `delta` (f32), and its range of keys (two i32), if there are any, each of
  /// all columns.
  int64_t offsetNumbers, bytesOfNumbers;
  /// With ranges of keys, the tiles of queries that each warp has found.
  int64_t offsetFound;
  int64_t sharedBytes;
  /// Sums of keys and of values are two parts where a thread has no registers
  /// for both.
  SmallVector<BackwardPart> parts;

  int64_t countPartsOfKeys() const { return parts.size() - 1; }

  /// Fails, with the reason, if there is no room.
  static FailureOr<AttentionBackwardMemory>
  get(const AttentionBackwardSpec &spec, AttentionConfigAttr config,
      GPUTargetAttr target, std::string &reason);
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_ATTENTIONBACKWARDMEMORY_H
