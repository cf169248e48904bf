//===- StreamClusters.cpp - What streams are made of ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamClusters.h"
#include "fp8/IR/FP8Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-form-streams"

using namespace mlir;
using namespace mlir::fp8;

StreamClusters::StreamClusters(Block &block) : block(block) {
  Operation *lastEffect = nullptr;
  for (Operation &op : block) {
    // The order of effects stays what it is.
    if (!isMemoryEffectFree(&op)) {
      effectBefore[&op] = lastEffect;
      lastEffect = &op;
    }
    add(&op);
  }
}

SmallVector<Operation *> StreamClusters::getDependencies(Operation *op) const {
  SmallVector<Operation *> dependencies;
  auto addValue = [&](Value value) {
    Operation *definition = value.getDefiningOp();
    if (definition && definition->getBlock() == &block)
      dependencies.push_back(definition);
  };
  llvm::for_each(op->getOperands(), addValue);
  if (op->getNumRegions() != 0) {
    llvm::SetVector<Value> used;
    getUsedValuesDefinedAbove(op->getRegions(), used);
    llvm::for_each(used, addValue);
  }
  if (Operation *effect = effectBefore.lookup(op))
    dependencies.push_back(effect);
  return dependencies;
}

void StreamClusters::close(Set &needed) const {
  for (size_t i = 0; i < needed.size(); ++i)
    for (unsigned other : needs[needed[i]])
      needed.insert(other);
}

StreamClusters::Set
StreamClusters::getNeeded(Operation *op, std::optional<unsigned> own) const {
  Set needed;
  for (Operation *dependency : getDependencies(op)) {
    auto cluster = clusterOf.find(dependency);
    if (cluster != clusterOf.end()) {
      if (own != cluster->second)
        needed.insert(cluster->second);
    } else if (auto found = neededBy.find(dependency);
               found != neededBy.end()) {
      needed.insert_range(found->second);
    }
  }
  close(needed);
  return needed;
}

//===----------------------------------------------------------------------===//
// What goes together
//===----------------------------------------------------------------------===//

static bool isSingle(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

/// Whether `op` waits for all of a tensor, or for all of its rows, of which
/// `layouts` measures.
static bool waitsForAll(Operation *op, const StreamLayouts &layouts) {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    const StreamLayout *layout = layouts.lookup(operand);
    return layout && isReduction(operand.getDefiningOp()) &&
           (layout->isSingle() ||
            llvm::is_contained(ArrayRef(layout->block).drop_back(),
                               ScaledType::kWhole));
  });
}

/// What streams are made of.
static bool isMember(Operation *op) {
  return isa<AmaxOp, QuantizeOp, ComputeScaleOp, TransposeOp,
             linalg::GenericOp>(op);
}

/// The tensors with all elements that a cluster reads and writes.
static size_t countTensors(ArrayRef<Operation *> ops,
                           const StreamLayouts &layouts) {
  llvm::SmallDenseSet<Value> tensors;
  for (Operation *op : ops) {
    auto destination = dyn_cast<DestinationStyleOpInterface>(op);
    for (OpOperand &operand : op->getOpOperands())
      if ((!destination || !destination.isDpsInit(&operand)) &&
          isa<RankedTensorType>(operand.get().getType()) &&
          !layouts.lookup(operand.get()) &&
          cast<RankedTensorType>(operand.get().getType()).getShape() ==
              layouts.getDomain())
        tensors.insert(operand.get());
    for (Value result : op->getResults()) {
      const StreamLayout *layout = layouts.lookup(result);
      // What may still join the cluster leaves nothing in memory.
      bool isLeft = llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !llvm::is_contained(ops, user) && !isMember(user);
      });
      if (layout && layout->isFull() && isLeft)
        tensors.insert(result);
    }
  }
  return tensors.size();
}

/// Whether the two share a tensor that has an element for each of the domain.
static bool sharesTensor(Operation *op, ArrayRef<Operation *> cluster,
                         const StreamLayouts &layouts) {
  for (Value operand : op->getOperands()) {
    if (!isa<ShapedType, ScaledType>(operand.getType()) || isSingle(operand))
      continue;
    if (layouts.lookup(operand))
      return true;
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    // Outputs of linalg are no inputs.
    if (!type || type.getShape() != layouts.getDomain() ||
        operand.getDefiningOp<tensor::EmptyOp>() ||
        operand.getDefiningOp<linalg::FillOp>())
      continue;
    for (Operation *other : cluster)
      if (llvm::is_contained(other->getOperands(), operand))
        return true;
  }
  return false;
}

/// Whether the factors of what `op` transposes can be had in the other order: a
/// single one is its own transpose, others are computed here or nowhere.
static bool hasOwnFactors(TransposeOp op, ArrayRef<Operation *> cluster) {
  Value source = op.getSource();
  while (auto transpose = source.getDefiningOp<TransposeOp>())
    source = transpose.getSource();
  auto quantize = source.getDefiningOp<QuantizeOp>();
  return quantize &&
         (isSingle(quantize.getScaleInv()) ||
          llvm::is_contained(cluster, quantize.getScaleInv().getDefiningOp()));
}

bool StreamClusters::tryJoin(Operation *op, unsigned cluster) {
  if (!sharesTensor(op, clusters[cluster], layouts[cluster]) ||
      waitsForAll(op, layouts[cluster]))
    return false;
  if (auto transpose = dyn_cast<TransposeOp>(op);
      transpose && !hasOwnFactors(transpose, clusters[cluster]))
    return false;
  if (getNeeded(op, cluster).contains(cluster)) {
    LDBG() << "needs what only comes after the pass: " << *op;
    return false;
  }
  StreamLayouts extended = layouts[cluster];
  std::string reason;
  if (failed(extended.add(op, reason))) {
    LDBG() << "not with what it reads: " << reason << ": " << *op;
    return false;
  }
  Cluster ops = clusters[cluster];
  ops.push_back(op);
  if (countTensors(ops, extended) > kMaxStreamTensors) {
    LDBG() << "more tensors than one pass has: " << *op;
    return false;
  }
  layouts[cluster] = std::move(extended);
  join(op, cluster);
  return true;
}

void StreamClusters::join(Operation *op, unsigned cluster) {
  needs[cluster].insert_range(getNeeded(op, cluster));
  clusters[cluster].push_back(op);
  clusterOf[op] = cluster;
}

/// What is worth a pass of its own.
static bool isSeed(Operation *op) {
  return isa<AmaxOp, QuantizeOp, linalg::GenericOp>(op);
}

void StreamClusters::add(Operation *op) {
  if (isMember(op)) {
    // The latest that shares most: what was just computed is at hand.
    for (unsigned cluster = clusters.size(); cluster-- > 0;)
      if (tryJoin(op, cluster))
        return;
    SmallVector<int64_t> domain = StreamLayouts::getOwnDomain(op);
    StreamLayouts own(domain);
    std::string reason;
    if (isSeed(op) && !domain.empty() && domain.size() <= 3) {
      // The scale of a whole tensor is computed by who quantises with it.
      auto quantize = dyn_cast<QuantizeOp>(op);
      auto scale = quantize && quantize.getScale()
                       ? quantize.getScale().getDefiningOp<ComputeScaleOp>()
                       : ComputeScaleOp();
      // An empty tensor has no block that would write it, and who has read the
      // scale before has his place.
      bool takesScale =
          scale && scale->getBlock() == &block && isSingle(scale.getScale()) &&
          llvm::all_of(domain, [](int64_t extent) { return extent > 0; }) &&
          llvm::all_of(scale->getUsers(),
                       [&](Operation *user) {
                         return isa<QuantizeOp>(user) &&
                                user->getBlock() == &block &&
                                !user->isBeforeInBlock(op);
                       }) &&
          !clusterOf.contains(scale) && succeeded(own.add(scale, reason));
      if (succeeded(own.add(op, reason))) {
        unsigned number = clusters.size();
        clusters.emplace_back();
        needs.emplace_back();
        layouts.push_back(std::move(own));
        if (takesScale) {
          neededBy.erase(scale);
          join(scale, number);
        }
        join(op, number);
        return;
      }
      LDBG() << "no pass of its own: " << reason << ": " << *op;
    }
  }
  if (Set needed = getNeeded(op, std::nullopt); !needed.empty())
    neededBy[op] = std::move(needed);
}

//===----------------------------------------------------------------------===//
// In which order
//===----------------------------------------------------------------------===//

SmallVector<Operation *> StreamClusters::getOrder() const {
  SmallVector<Operation *> order;
  DenseSet<Operation *> done;
  std::function<void(Operation *)> visit = [&](Operation *op) {
    if (done.contains(op))
      return;
    auto cluster = clusterOf.find(op);
    ArrayRef<Operation *> together = cluster == clusterOf.end()
                                         ? ArrayRef(op)
                                         : ArrayRef(clusters[cluster->second]);
    for (Operation *member : together)
      for (Operation *dependency : getDependencies(member))
        if (!llvm::is_contained(together, dependency))
          visit(dependency);
    for (Operation *member : together)
      if (done.insert(member).second)
        order.push_back(member);
  };
  for (Operation &op : block)
    visit(&op);
  return order;
}
