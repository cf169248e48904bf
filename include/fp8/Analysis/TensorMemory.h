//===- TensorMemory.h - Memory of tensors, before it exists -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model of what bufferization will make of a block of tensors, for passes
// that place operations by it. Each result that is not another one's memory is
// allocated before its operation, and freed after its last use.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_TENSORMEMORY_H
#define FP8_ANALYSIS_TENSORMEMORY_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace mlir::fp8 {

/// Bytes that values of a type take in memory, a byte for an element of less
/// but for codes that share it; nothing if an extent is not known, or nothing
/// is in memory.
std::optional<double> getBytes(Type type);

/// Whether a tensor has more than one element, as far as is known.
bool isLarge(Type type);

/// Whether `op` computes nothing: its results are what its operands are, seen
/// in another way, or put together or taken apart.
bool isViewOfTensor(Operation *op);

/// Bytes that `op`, which is no view, allocates for its results; nothing if an
/// extent is not known.
std::optional<double> getMadeBytes(Operation *op);

/// The last operation of `block` that uses `value`, a view of it, or something
/// that does so in a region; null without one.
Operation *getLastUser(Value value, Block &block);

/// Bytes of tensors made in the block of `op` that nobody needs after it;
/// nothing if an extent is not known.
std::optional<double> getFreedBytes(Operation *op);

/// What is allocated while each operation of a block runs, without what comes
/// into the block.
class MemoryProfile {
public:
  /// Nothing if an extent is not known.
  static std::optional<MemoryProfile> get(Block &block);

  /// The most bytes at a time.
  double getPeak() const;
  /// The most from `first` to before `end`, both of the block.
  double getPeak(Operation *first, Operation *end) const;
  double getAllocated(Operation *op) const;
  /// Adds to what is allocated from `first` to before `end`.
  void add(Operation *first, Operation *end, double bytes);

private:
  MemoryProfile() = default;

  DenseMap<Operation *, size_t> positions;
  SmallVector<double> allocated;
};

} // namespace mlir::fp8

#endif // FP8_ANALYSIS_TENSORMEMORY_H
