//===- FusionClusters.h - What fusions are made of --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_LOOPFUSION_FUSIONCLUSTERS_H
#define FP8_LIB_TRANSFORMS_LOOPFUSION_FUSIONCLUSTERS_H

#include "fp8/Analysis/FusionLayouts.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {

/// Whether `value` is a tensor whose elements have the same order in whatever
/// order its dimensions are.
bool isVector(Value value);

/// Whether `value` has an element for each of the domain, codes and factors
/// counting as the codes.
bool isOfDomain(Value value, const FusionLayouts &layouts);

/// The tensors with all elements that `ops` read and write, as one pass.
size_t countTensors(ArrayRef<Operation *> ops, const FusionLayouts &layouts);

/// Groups the operations of a block that one pass over memory computes each:
/// those that read the same tensor, or what another of the group computes. A
/// dequantize that several groups read is copied into each, as codes are less
/// to read than numbers, and so is light arithmetic on what is no more to read
/// than its result, a rotation, and scales of blocks that wait for the tensor's
/// amax. What goes by an element's place takes part
/// only `positionDependent`.
class FusionClusters {
public:
  /// In program order.
  using Cluster = SmallVector<Operation *>;

  explicit FusionClusters(Block &block, bool positionDependent = false);

  bool isEmpty() const { return clusterOf.empty(); }
  /// The operations of the block in an order in which each cluster's stand
  /// together: what they need comes before the first.
  SmallVector<Operation *> getOrder() const;
  /// The clusters, as they follow each other when the block is in that order.
  SmallVector<Cluster> getInOrder() const;

private:
  void add(Operation *op);
  /// Puts `ops`, of which each but the last is only for the last, where others
  /// share most with them, or begins another cluster.
  bool place(ArrayRef<Operation *> ops);
  bool tryJoin(ArrayRef<Operation *> ops, unsigned cluster);
  bool tryBegin(ArrayRef<Operation *> ops);
  void join(Operation *op, unsigned cluster);
  /// The clusters that compute or read what one of `ops` reads, the latest
  /// first.
  SmallVector<unsigned> getRelated(ArrayRef<Operation *> ops) const;
  /// Whether each cluster that reads what `op` computes has `op` itself.
  bool isSource(Operation *op) const;
  /// Those of what `op` reads, and of what they read, the first one first.
  SmallVector<Operation *> getSources(Operation *op) const;
  void copySources();
  void copyProducers();
  /// Computes `value`, which another cluster does, in `cluster` too, if that is
  /// less to read.
  bool copyProducer(Value value, unsigned cluster);
  /// Takes an operation that nobody needs any more out of its cluster, and the
  /// block.
  void eraseUnused(Operation *op);
  /// Whether `ops`, with the operations of `cluster` among them, need results
  /// of it by way of others.
  bool needThemselves(ArrayRef<Operation *> ops, unsigned cluster) const;
  /// A place in the block before `cluster` that no cluster has operations on
  /// both sides of.
  unsigned getCut(unsigned cluster) const;
  SmallVector<Operation *> getDependencies(Operation *op) const;

  Block &block;
  bool positionDependent;
  /// None for what has turned out to be no pass.
  SmallVector<Cluster> clusters;
  SmallVector<FusionLayouts> layouts;
  /// The places of their first and last operations in the block.
  SmallVector<std::pair<unsigned, unsigned>> spans;
  /// The last place of this and all clusters before it.
  SmallVector<unsigned> lastBefore;
  DenseMap<Operation *, unsigned> places;
  DenseMap<Operation *, unsigned> clusterOf;
  /// The clusters that compute or read a value.
  DenseMap<Value, llvm::SmallSetVector<unsigned, 2>> related;
  /// The operation with an effect before each that has one.
  DenseMap<Operation *, Operation *> effectBefore;
};

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_LOOPFUSION_FUSIONCLUSTERS_H
