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
#include "../Blocks/KernelBuilder.h"
#include "SM90Dialect.h"
#include "fp8/GPU/IR/FP8GPUAttrs.h"

namespace mlir::fp8::sm90 {

/// A matrix in shared memory as bulk tensor copies write it and wgmma reads it:
/// boxes beside each other, each with a line of `width` bytes (128, 64 or 32)
/// of every row, swizzled in groups of 8 lines (PTX ISA, "Asynchronous
/// Warpgroup Level Matrix Shared Memory Layout").
struct SharedMatrix {
  Type elementType;
  int64_t rows = 0, rowBytes = 0, width = 0;

  SharedMatrix() = default;
  /// `columns` elements a row, whose bytes are a multiple of 32.
  SharedMatrix(Type elementType, int64_t rows, int64_t columns);

  int64_t getBoxes() const { return rowBytes / width; }
  int64_t getBoxBytes() const { return rows * width; }
  int64_t getBytes() const { return rows * rowBytes; }
  int64_t getElementBytes() const {
    return elementType.getIntOrFloatBitWidth() / 8;
  }
  /// Columns of a box.
  int64_t getBoxColumns() const { return width / getElementBytes(); }

  /// The descriptor (i64) of what begins at byte `address` (i32) of shared
  /// memory, a multiple of 8 lines, with the columns as K.
  Value getDescriptor(KernelBuilder &b, Value address) const;
  /// The same with the rows as K, for 16 bits.
  Value getTransposedDescriptor(KernelBuilder &b, Value address) const;
  /// Where the `step`-th 32 bytes of a row are from its first.
  int64_t getStepBytes(int64_t step) const {
    return step * 32 / width * getBoxBytes() + step * 32 % width;
  }
  /// What the numbers of 16 bytes in a line of row `row` (i32) are
  /// exclusive-ored with.
  Value getSwizzle(KernelBuilder &b, Value row) const;
  /// The byte (i32) of the 16 bytes number `chunk` of row `row` (i32).
  Value locate(KernelBuilder &b, Value row, Value chunk) const;
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
  /// For few queries, a word that says which of a tile's blocks came last.
  int64_t offsetFlag;
  /// Blocks that a multiprocessor runs at a time.
  int64_t resident = 1;
  int64_t threads, consumerRegisters, producerRegisters;

  /// Keys that one bulk copy brings: no more than a page has.
  int64_t getKeysOfBox(const AttentionSpec &spec) const {
    return spec.pageSize ? std::min(spec.pageSize, k.rows) : k.rows;
  }
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
