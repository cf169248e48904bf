//===- AttentionTotals.h - Sums of chunks of keys ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONTOTALS_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONTOTALS_H

#include "../Blocks/KernelBuilder.h"

namespace mlir::fp8::sm90 {

/// A thread's sums of all chunks of keys so far. They are in local memory:
/// registers are for those of the chunk that is walked.
class AttentionTotals {
public:
  AttentionTotals(KernelBuilder &b, Value slots, int64_t count)
      : b(b), count(count), slots(slots) {}
  /// Memory for them, within the first block of a kernel: elsewhere it would be
  /// allocated when that runs.
  static Value allocate(KernelBuilder &b, int64_t count);

  void clear();
  /// Adds a chunk's. `weights` of both rows are what these are multiplied by,
  /// and then those of the chunk.
  void add(ArrayRef<Value> sums, const std::pair<Value, Value> (&weights)[2]);
  SmallVector<Value> load();

private:
  /// Sums that are loaded at once, and the address of those from `first` on.
  static constexpr int64_t kTogether = 4;
  Value getAddress(int64_t first);

  KernelBuilder &b;
  int64_t count;
  Value slots;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONTOTALS_H
