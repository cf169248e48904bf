//===- AttentionMemory.h - Shared memory of attention kernels ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONMEMORY_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONMEMORY_H

#include "../Attention/AttentionSpec.h"
#include "../Attention/SwizzledMatrix.h"
#include "SM90Dialect.h"
#include "fp8/GPU/IR/FP8GPUAttrs.h"

namespace mlir::fp8::sm90 {

/// A matrix in shared memory that wgmma reads (PTX ISA, "Asynchronous Warpgroup
/// Level Matrix Shared Memory Layout").
struct SharedMatrix : SwizzledMatrix {
  using SwizzledMatrix::SwizzledMatrix;

  /// The descriptor (i64) of what begins at byte `address` (i32) of shared
  /// memory, a multiple of 8 lines, with the columns as K.
  Value getDescriptor(KernelBuilder &b, Value address) const;
  /// The same with the rows as K, for 16 bits.
  Value getTransposedDescriptor(KernelBuilder &b, Value address) const;
};

/// Where an attention kernel's tiles lie in shared memory, and how registers
/// are shared out.
struct AttentionMemory {
  SharedMatrix q, k, v, output;
  /// V with the keys side by side, for 8 bits, which wgmma reads K-major only.
  SharedMatrix transposedV;
  /// Bytes from the start; of K, V and transposed V those of stage 0.
  int64_t offsetQ, offsetK, offsetV, offsetTransposedV, offsetOutput;
  int64_t offsetBarriers, sharedBytes;
  /// For few queries, a word that says which of a tile's blocks came last. Of
  /// turns given with the maxima, a zero.
  int64_t offsetFlag;
  /// Blocks that a multiprocessor runs at a time.
  int64_t resident = 1;
  int64_t threads, consumerRegisters, producerRegisters;

  bool hasTransposedV() const { return transposedV.rows != 0; }
  /// Results go where the queries were, for want of room.
  bool sharesQ() const { return offsetOutput == offsetQ; }

  /// Fails, with the reason, if there is no room.
  static FailureOr<AttentionMemory> get(const AttentionSpec &spec,
                                        AttentionConfigAttr config,
                                        GPUTargetAttr target,
                                        std::string &reason);
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONMEMORY_H
