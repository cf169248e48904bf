//===- FusionClusters.cpp - What fusions are made of ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionClusters.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/FoldedReads.h"
#include "fp8/IR/PackedCodes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/DebugLog.h"

#include <limits>

#define DEBUG_TYPE "fp8-form-fusions"

using namespace mlir;
using namespace mlir::fp8;

FusionClusters::FusionClusters(Block &block, bool positionDependent)
    : block(block), positionDependent(positionDependent) {
  Operation *lastEffect = nullptr;
  for (Operation &op : block) {
    places.try_emplace(&op, places.size());
    // The order of effects stays what it is.
    if (!isMemoryEffectFree(&op)) {
      effectBefore[&op] = lastEffect;
      lastEffect = &op;
    }
    add(&op);
  }
  copySources();
  copyProducers();
  // Copies in another order have kernels of their own.
  for (Cluster &cluster : clusters)
    if (llvm::all_of(cluster, llvm::IsaPred<TransposeOp>)) {
      for (Operation *op : cluster)
        clusterOf.erase(op);
      cluster.clear();
    }
}

SmallVector<Operation *> FusionClusters::getDependencies(Operation *op) const {
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

unsigned FusionClusters::getCut(unsigned cluster) const {
  unsigned cut = spans[cluster].first;
  bool isCut;
  do {
    isCut = true;
    for (unsigned other = cluster; other-- > 0 && lastBefore[other] >= cut;)
      if (spans[other].first < cut && spans[other].second >= cut) {
        cut = spans[other].first;
        isCut = false;
      }
    // Those that began later may have operations from before.
    for (unsigned other = cluster + 1; other < spans.size(); ++other)
      if (spans[other].first < cut) {
        cut = spans[other].first;
        isCut = false;
      }
  } while (!isCut);
  return cut;
}

bool FusionClusters::needThemselves(ArrayRef<Operation *> ops,
                                    unsigned cluster) const {
  // What is before the cut needs nothing that comes after it.
  unsigned cut = getCut(cluster);
  llvm::SmallDenseSet<Operation *> seen;
  llvm::SmallDenseSet<unsigned> seenClusters;
  SmallVector<Operation *> worklist;
  for (Operation *op : ops)
    for (Operation *dependency : getDependencies(op)) {
      auto it = clusterOf.find(dependency);
      if (!llvm::is_contained(ops, dependency) &&
          !(it != clusterOf.end() && it->second == cluster))
        worklist.push_back(dependency);
    }
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (places.lookup(op) < cut || !seen.insert(op).second)
      continue;
    auto it = clusterOf.find(op);
    if (it == clusterOf.end()) {
      worklist.append(getDependencies(op));
      continue;
    }
    if (it->second == cluster)
      return true;
    if (seenClusters.insert(it->second).second)
      for (Operation *member : clusters[it->second])
        worklist.append(getDependencies(member));
  }
  return false;
}

//===----------------------------------------------------------------------===//
// What goes together
//===----------------------------------------------------------------------===//

static bool isSingle(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

/// Rows that a pass holds without spilling registers.
static constexpr int64_t kMaxHeldRows = 64;

/// Whether `layout` is of all rows, and how many these are if that is known.
static std::optional<int64_t> countMeasuredRows(const FusionLayout &layout,
                                                ArrayRef<int64_t> domain) {
  int64_t rows = 0;
  for (auto [extent, block] :
       llvm::zip_equal(domain.drop_back(), ArrayRef(layout.block).drop_back()))
    if (block == ScaledType::kWhole)
      rows =
          extent <= 0 ? kMaxHeldRows + 1 : std::max<int64_t>(rows, 1) * extent;
  return rows == 0 ? std::nullopt : std::optional(rows);
}

/// The rows that `op` waits for, of which `layouts` measures; none if it waits
/// for none, and more than a pass holds if for all of a tensor.
static std::optional<int64_t> getAwaitedRows(Operation *op,
                                             const FusionLayouts &layouts) {
  std::optional<int64_t> awaited;
  for (Value operand : op->getOperands()) {
    const FusionLayout *layout = layouts.lookup(operand);
    if (!layout || !isReduction(operand.getDefiningOp()))
      continue;
    std::optional<int64_t> rows =
        layout->isSingle() ? kMaxHeldRows + 1
                           : countMeasuredRows(*layout, layouts.getDomain());
    if (rows)
      awaited = std::max(*rows, awaited.value_or(0));
  }
  return awaited;
}

/// Whether `op` waits for all of a tensor, or for more of its rows than a pass
/// holds.
static bool waitsForAll(Operation *op, const FusionLayouts &layouts) {
  return getAwaitedRows(op, layouts).value_or(0) > kMaxHeldRows;
}

/// Whether `ops` hold columns while they measure whole rows, which is more than
/// there are registers for. What is measured of the whole tensor is held by no
/// row: nothing in a pass waits for it.
static bool holdBoth(ArrayRef<Operation *> ops, const FusionLayouts &layouts) {
  return llvm::any_of(ops,
                      [&](Operation *op) {
                        return getAwaitedRows(op, layouts).has_value();
                      }) &&
         llvm::any_of(ops, [&](Operation *op) {
           if (!isReduction(op))
             return false;
           const FusionLayout &layout = *layouts.lookup(op->getResult(0));
           return layout.block.back() == ScaledType::kWhole &&
                  !layout.isSingle();
         });
}

/// Whether it is numbers of codes, which no kernel reads in their place.
static bool isDequantize(Operation *op) {
  auto dequantize = dyn_cast<DequantizeOp>(op);
  return dequantize && !isFolded(dequantize);
}

/// What fusions are made of.
static bool isMember(Operation *op) {
  return isDequantize(op) || isa<AmaxOp, QuantizeOp, ComputeScaleOp, HadamardOp,
                                 TransposeOp, linalg::GenericOp>(op);
}

bool fp8::isVector(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() &&
         llvm::count_if(type.getShape(),
                        [](int64_t extent) { return extent != 1; }) <= 1;
}

bool fp8::isOfDomain(Value value, const FusionLayouts &layouts) {
  if (auto scaled = dyn_cast<ScaledType>(value.getType()))
    return scaled.getShape() == layouts.getDomain();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getShape() == layouts.getDomain();
}

size_t fp8::countTensors(ArrayRef<Operation *> ops,
                         const FusionLayouts &layouts) {
  llvm::SmallDenseSet<Value> tensors;
  for (Operation *op : ops) {
    auto destination = dyn_cast<DestinationStyleOpInterface>(op);
    for (OpOperand &operand : op->getOpOperands())
      if ((!destination || !destination.isDpsInit(&operand)) &&
          !layouts.lookup(operand.get()) && isOfDomain(operand.get(), layouts))
        tensors.insert(operand.get());
    // Rows that are read by an index.
    op->walk([&](tensor::ExtractOp extract) {
      tensors.insert(extract.getTensor());
    });
    for (Value result : op->getResults()) {
      const FusionLayout *layout = layouts.lookup(result);
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
                         const FusionLayouts &layouts) {
  for (Value operand : op->getOperands()) {
    if (!isa<ShapedType, ScaledType>(operand.getType()) || isSingle(operand))
      continue;
    if (layouts.lookup(operand))
      return true;
    // Outputs of linalg are no inputs.
    if (!isOfDomain(operand, layouts) ||
        operand.getDefiningOp<tensor::EmptyOp>() ||
        operand.getDefiningOp<linalg::FillOp>())
      continue;
    for (Operation *other : cluster)
      if (llvm::is_contained(other->getOperands(), operand))
        return true;
  }
  return false;
}

/// Whether the factors of what `op` transposes can be had in the other order:
/// those of rows or columns alone are in the same one, others are computed
/// here, or read with the codes. Those of E2M1 that are given are read for
/// that: its codes, two in a byte, have no kernel of their own that transposes
/// them.
static bool hasOwnFactors(TransposeOp op, ArrayRef<Operation *> cluster) {
  auto isInside = [&](Operation *other) {
    return llvm::is_contained(cluster, other);
  };
  Value source = op.getSource();
  while (auto transpose = source.getDefiningOp<TransposeOp>()) {
    if (!isInside(transpose))
      break;
    source = transpose.getSource();
  }
  auto quantize = source.getDefiningOp<QuantizeOp>();
  return !quantize || !isInside(quantize) || isVector(quantize.getScaleInv()) ||
         isPacked(quantize.getResult().getType().getElementType()) ||
         isInside(quantize.getScaleInv().getDefiningOp());
}

bool FusionClusters::tryJoin(ArrayRef<Operation *> added, unsigned cluster) {
  if (llvm::none_of(added, [&](Operation *op) {
        return sharesTensor(op, clusters[cluster], layouts[cluster]);
      }))
    return false;
  Cluster ops = clusters[cluster];
  FusionLayouts extended = layouts[cluster];
  SmallVector<Operation *> others;
  for (Operation *op : added) {
    if (llvm::is_contained(ops, op))
      continue;
    if (waitsForAll(op, extended))
      return false;
    if (auto transpose = dyn_cast<TransposeOp>(op);
        transpose && !hasOwnFactors(transpose, ops))
      return false;
    std::string reason;
    if (failed(extended.add(op, reason))) {
      LDBG() << "not with what it reads: " << reason << ": " << *op;
      return false;
    }
    ops.push_back(op);
    others.push_back(op);
  }
  if (holdBoth(ops, extended)) {
    LDBG() << "holds columns, and measures rows: " << *added.back();
    return false;
  }
  if (needThemselves(ops, cluster)) {
    LDBG() << "needs what only comes after the pass: " << *added.back();
    return false;
  }
  if (countTensors(ops, extended) > kMaxFusionTensors) {
    LDBG() << "more tensors than one pass has: " << *added.back();
    return false;
  }
  layouts[cluster] = std::move(extended);
  for (Operation *op : others)
    join(op, cluster);
  return true;
}

void FusionClusters::join(Operation *op, unsigned cluster) {
  clusters[cluster].push_back(op);
  clusterOf.try_emplace(op, cluster);
  for (Value value : op->getOperands())
    related[value].insert(cluster);
  for (Value value : op->getResults())
    related[value].insert(cluster);
  auto &[first, last] = spans[cluster];
  unsigned place = places.lookup(op);
  first = std::min(first, place);
  last = std::max(last, place);
  for (unsigned other = cluster;
       other < lastBefore.size() && lastBefore[other] < place; ++other)
    lastBefore[other] = place;
}

SmallVector<unsigned>
FusionClusters::getRelated(ArrayRef<Operation *> ops) const {
  llvm::SmallSetVector<unsigned, 4> found;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (auto it = related.find(operand); it != related.end())
        found.insert_range(it->second);
  SmallVector<unsigned> sorted = found.takeVector();
  llvm::sort(sorted, std::greater<>());
  return sorted;
}

/// What a pass begins with, though a copy in another order needs others that
/// read the same codes.
static bool isSeed(Operation *op) {
  return isDequantize(op) ||
         isa<AmaxOp, QuantizeOp, HadamardOp, TransposeOp, linalg::GenericOp>(
             op);
}

bool FusionClusters::tryBegin(ArrayRef<Operation *> ops) {
  Operation *op = ops.back();
  // What is transposed first goes through memory as it was before.
  auto turned = llvm::find_if(ops, llvm::IsaPred<linalg::TransposeOp>);
  SmallVector<int64_t> domain =
      FusionLayouts::getOwnDomain(turned == ops.end() ? op : *turned);
  if (!isSeed(op) || domain.empty() || domain.size() > 3)
    return false;
  FusionLayouts own(domain);
  std::string reason;
  // The scale of a whole tensor is computed by who quantizes with it.
  auto quantize = dyn_cast<QuantizeOp>(op);
  auto scale = quantize && quantize.getScale()
                   ? quantize.getScale().getDefiningOp<ComputeScaleOp>()
                   : ComputeScaleOp();
  // An empty tensor has no block that would write it, and who has read the
  // scale before has his place.
  bool takesScale =
      scale && scale->getBlock() == &block && isSingle(scale.getScale()) &&
      !llvm::is_contained(ops, scale) &&
      llvm::all_of(domain, [](int64_t extent) { return extent > 0; }) &&
      llvm::all_of(scale->getUsers(),
                   [&](Operation *user) {
                     return isa<QuantizeOp>(user) &&
                            user->getBlock() == &block &&
                            !user->isBeforeInBlock(op);
                   }) &&
      !clusterOf.contains(scale);
  auto addAll = [&](bool withScale) {
    FusionLayouts layouts(domain);
    bool isAdded = (!withScale || succeeded(layouts.add(scale, reason))) &&
                   llvm::all_of(ops, [&](Operation *added) {
                     return succeeded(layouts.add(added, reason));
                   });
    if (isAdded)
      own = std::move(layouts);
    return isAdded;
  };
  // A block that happens to have all elements has not the tensor's scale.
  takesScale = takesScale && addAll(/*withScale=*/true);
  if (!takesScale && !addAll(/*withScale=*/false)) {
    LDBG() << "no pass of its own: " << reason << ": " << *op;
    return false;
  }
  unsigned number = clusters.size();
  clusters.emplace_back();
  spans.emplace_back(std::numeric_limits<unsigned>::max(), 0);
  lastBefore.push_back(lastBefore.empty() ? 0 : lastBefore.back());
  layouts.push_back(std::move(own));
  if (takesScale)
    join(scale, number);
  for (Operation *added : ops)
    join(added, number);
  return true;
}

bool FusionClusters::place(ArrayRef<Operation *> ops) {
  // The latest that shares most: what was just computed is at hand.
  for (unsigned cluster : getRelated(ops))
    if (tryJoin(ops, cluster))
      return true;
  return tryBegin(ops);
}

/// Whether `op` is only there for rotations along what were columns before.
static bool isForRotations(Operation *op) {
  return isa<linalg::TransposeOp>(op) && !op->use_empty() &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return isa<HadamardOp>(user) && user->getBlock() == op->getBlock();
         });
}

/// Whether a quantize reads the scales of blocks that `op` computes, of a
/// tensor that has a scale itself. That quantize comes after all of the tensor
/// was read, and reads it once more: measuring blocks there, and not before,
/// costs nothing and leaves nothing in memory. An empty tensor has no block of
/// threads that would write its own scale.
static bool isOfBlocks(ComputeScaleOp op) {
  return op.getTensorAmax() &&
         llvm::any_of(op.getScale().getUsers(), [&](Operation *user) {
           auto quantize = dyn_cast<QuantizeOp>(user);
           return quantize && user->getBlock() == op->getBlock() &&
                  llvm::all_of(quantize.getSource().getType().getShape(),
                               [](int64_t extent) { return extent > 0; });
         });
}

/// The same of amaxes of which only such scales are made.
static bool isOfBlocks(AmaxOp op) {
  return !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
    auto scale = dyn_cast<ComputeScaleOp>(user);
    return scale && scale->getBlock() == op->getBlock() &&
           scale.getTensorAmax() != op.getAmax() && isOfBlocks(scale);
  });
}

bool FusionClusters::isSource(Operation *op) const {
  if (auto amax = dyn_cast<AmaxOp>(op))
    return isOfBlocks(amax);
  if (auto scale = dyn_cast<ComputeScaleOp>(op)) {
    auto amax = scale.getAmax().getDefiningOp<AmaxOp>();
    return amax && amax->getBlock() == &block && isOfBlocks(amax);
  }
  return isDequantize(op) ||
         (positionDependent && (isa<HadamardOp>(op) || isForRotations(op)));
}

SmallVector<Operation *> FusionClusters::getSources(Operation *op) const {
  llvm::SetVector<Operation *> sources;
  std::function<void(Operation *)> visit = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      if (Operation *source = operand.getDefiningOp();
          source && source->getBlock() == &block && isSource(source)) {
        visit(source);
        sources.insert(source);
      }
  };
  visit(op);
  return sources.takeVector();
}

void FusionClusters::add(Operation *op) {
  // Who reads it has a place for it.
  if (isSource(op) && (isa<ComputeScaleOp>(op) ||
                       llvm::all_of(op->getUsers(), [&](Operation *user) {
                         return user->getBlock() == &block && isMember(user);
                       })))
    return;
  if (!isMember(op))
    return;
  SmallVector<Operation *> sources = getSources(op), ops = sources;
  ops.push_back(op);
  if (positionDependent || !isPositionDependent(op)) {
    if (place(ops))
      return;
    // With what has been transposed in memory.
    llvm::erase_if(ops, llvm::IsaPred<linalg::TransposeOp>);
    if (ops.size() <= sources.size() && place(ops))
      return;
  }
  // Numbers for an operation that is not in a pass with them.
  for (Operation *source : sources)
    if (!isa<linalg::TransposeOp>(source) && !clusterOf.contains(source))
      place(source);
  if (!sources.empty() && (positionDependent || !isPositionDependent(op)))
    place(op);
}

//===----------------------------------------------------------------------===//
// In which order
//===----------------------------------------------------------------------===//

SmallVector<Operation *> FusionClusters::getOrder() const {
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

SmallVector<FusionClusters::Cluster> FusionClusters::getInOrder() const {
  SmallVector<Cluster> ordered;
  for (const Cluster &cluster : clusters)
    if (!cluster.empty())
      ordered.push_back(cluster);
  llvm::sort(ordered, [](const Cluster &a, const Cluster &b) {
    return a.front()->isBeforeInBlock(b.front());
  });
  return ordered;
}
