//===- StreamClusters.h - What streams are made of --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_STREAMCLUSTERS_H
#define FP8_LIB_TRANSFORMS_STREAMCLUSTERS_H

#include "fp8/Analysis/StreamLayouts.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {

/// Groups the operations of a block that one pass over memory computes each:
/// those that read the same tensor, or what another of the group computes. A
/// dequantise that several groups read is copied into each, as codes are less
/// to read than numbers.
class StreamClusters {
public:
  /// In program order.
  using Cluster = SmallVector<Operation *>;

  explicit StreamClusters(Block &block);

  bool isEmpty() const { return clusterOf.empty(); }
  /// The operations of the block in an order in which each cluster's stand
  /// together: what they need comes before the first.
  SmallVector<Operation *> getOrder() const;
  /// The clusters, as they follow each other when the block is in that order.
  SmallVector<Cluster> getInOrder() const;

private:
  using Set = llvm::SmallSetVector<unsigned, 4>;

  void add(Operation *op);
  /// Puts `ops`, of which each but the last is only for the last, where others
  /// share most with them, or begins another cluster.
  bool place(ArrayRef<Operation *> ops);
  bool tryJoin(ArrayRef<Operation *> ops, unsigned cluster);
  bool tryBegin(ArrayRef<Operation *> ops);
  void join(Operation *op, unsigned cluster);
  /// The dequantises that `op` reads.
  SmallVector<Operation *> getSources(Operation *op) const;
  void copySources();
  /// The clusters that `ops` need results of, directly or not, but for those
  /// that they would have as operations of `cluster`.
  Set getNeeded(ArrayRef<Operation *> ops,
                std::optional<unsigned> cluster) const;
  void close(Set &needed) const;
  SmallVector<Operation *> getDependencies(Operation *op) const;

  Block &block;
  /// None for what has turned out to be no pass.
  SmallVector<Cluster> clusters;
  SmallVector<StreamLayouts> layouts;
  /// What clusters need of each other, directly or through other operations.
  SmallVector<Set> needs;
  /// The cluster of an operation that has one to itself, or what one outside of
  /// all needs.
  DenseMap<Operation *, unsigned> clusterOf;
  DenseMap<Operation *, Set> neededBy;
  /// The operation with an effect before each that has one.
  DenseMap<Operation *, Operation *> effectBefore;
};

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_STREAMCLUSTERS_H
