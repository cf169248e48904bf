//===- AttentionMemory.h - Where an attention kernel keeps what -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_ATTENTIONMEMORY_H
#define FP8_LIB_KERNELS_MMA_ATTENTIONMEMORY_H

#include "../Attention/AttentionBlock.h"
#include "MmaDialect.h"

namespace mlir::fp8::mma {

/// Tiles in shared memory: queries, and stages of keys and values.
struct AttentionMemory {
  SwizzledMatrix q, k, v;
  /// Bytes from the start; of K and V those of stage 0.
  int64_t offsetQ, offsetK, offsetV, sharedBytes;

  /// Fails, with the reason, if there is no room.
  static FailureOr<AttentionMemory> get(const AttentionSpec &spec,
                                        AttentionConfigAttr config,
                                        GPUTargetAttr target,
                                        std::string &reason);
};

/// What is computed and how, where it lies, and which thread this is.
struct AttentionContext : AttentionBlock {
  AttentionConfigAttr config;
  const AttentionMemory &memory;
  /// Whether codes become f16 before they are multiplied.
  bool expandsCodes;
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_ATTENTIONMEMORY_H
