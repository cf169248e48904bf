//===- LoopNests.h - Loops that go together ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_CASTS_LOOPNESTS_H
#define FP8_LIB_TRANSFORMS_CASTS_LOOPNESTS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace mlir::fp8 {

/// The loops of an operation on tensors, and how they index these. Loops p and
/// p + 1 are the pair p.
struct LoopNest {
  struct Access {
    Value value;
    /// For each dimension its loop, -1 for one that has none of its own.
    SmallVector<int64_t> loops;
    bool isWritten;

    /// The pair that dimensions `dim` and `dim + 1` are, or -1.
    int64_t getPair(int64_t dim) const;
  };

  Operation *op;
  unsigned numLoops;
  /// Operands, but for those that only say where results go, and results.
  SmallVector<Access> accesses = {};
  /// The pairs that may become one loop: neighbours in whatever has one of
  /// them.
  SmallVector<bool> mergeable = {};
  /// Whether it is a matrix product, whose kernels know nothing but rows.
  bool isContraction = false;
  /// Whether one pass computes it with what it reads, so that a reshape between
  /// the two would part them.
  bool isFused = false;
  /// Pairs whose first loop is of a reduction that no pass computes with
  /// others: over batches, each row by itself.
  SmallVector<bool> isOverBatches = {};

  /// The nest of operations that know how to work on fewer dimensions, and of
  /// reshapes, whose loops are the dimensions of fewer.
  static std::optional<LoopNest> get(Operation *op);
};

/// The dimensions `dim` and `dim + 1` of `value` that a reshape makes one of,
/// or one into.
SmallVector<std::pair<Value, int64_t>> getReshapedPairs(Operation *op);

/// Which pairs of the loops of which operations become one loop: what reshapes
/// ask for, and matrix products, and whatever shares tensors with them, as far
/// as it may.
class MergedLoops {
public:
  explicit MergedLoops(Operation *root);

  /// In program order, with the pairs of each; reshapes have none.
  ArrayRef<LoopNest> getNests() const { return nests; }
  SmallVector<bool> getMerged(unsigned nest) const;

private:
  /// The number of a nest and a pair of it.
  using Pair = std::pair<unsigned, int64_t>;
  /// What a neighbour means for a pair: nothing, that its tensor is wanted
  /// flat, or that it is wanted as it is.
  enum class Wish { None, Flat, Kept };

  /// All that is reached from reshapes and matrix products by way of `allowed`,
  /// or of anything.
  llvm::SetVector<Pair> flood(const llvm::SetVector<Pair> *allowed) const;
  /// What `nest` wants, where `asker` computes or reads `value` too.
  Wish getWish(Operation *asker, Value value, int64_t dim, unsigned nest) const;
  /// Whether a pair is better left alone: all that its operands (or the users
  /// of its results) have with other dimensions stays as it is.
  bool isKept(Pair pair, bool byUsers) const;
  /// Whether something that is flat reads what the operation computes.
  bool hasFlatUser(Pair pair) const;
  void keep();

  SmallVector<LoopNest> nests;
  DenseMap<Value, SmallVector<unsigned>> nestsOf;
  llvm::SetVector<Pair> merged;
  DenseSet<Pair> kept;
};

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_CASTS_LOOPNESTS_H
