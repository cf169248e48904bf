//===- FusionCopies.cpp - What several fusions compute --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionClusters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-form-fusions"

using namespace mlir;
using namespace mlir::fp8;

/// A dequantize, a rotation, or the scales of blocks stand in the first cluster
/// that reads them, and as a copy in all others.
void FusionClusters::copySources() {
  for (auto [number, cluster] : llvm::enumerate(clusters)) {
    IRMapping copies;
    SmallVector<Value> copied;
    for (Operation *&op : cluster) {
      if (clusterOf.lookup(op) == number)
        continue;
      OpBuilder b(op);
      llvm::append_range(copied, op->getResults());
      op = b.clone(*op, copies);
      clusterOf[op] = number;
    }
    for (Value value : copied)
      value.replaceUsesWithIf(copies.lookup(value), [&](OpOperand &use) {
        return llvm::is_contained(clusters[number], use.getOwner());
      });
  }
}

/// What one operation of arithmetic costs beside a load, roughly; nothing for
/// what is not light.
static std::optional<unsigned> getWeight(Operation *op) {
  if (isa<arith::ConstantOp, linalg::YieldOp>(op))
    return 0;
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
          arith::ExtFOp, arith::TruncFOp, arith::CmpFOp, arith::SelectOp,
          arith::MaximumFOp, arith::MinimumFOp>(op))
    return 1;
  return std::nullopt;
}

/// That of an elementwise operation for each element.
static std::optional<unsigned> getWeightOfBody(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic.getNumResults() != 1 || isReduction(op))
    return std::nullopt;
  unsigned sum = 0;
  for (Operation &inner : *generic.getBody()) {
    std::optional<unsigned> weight = getWeight(&inner);
    if (!weight)
      return std::nullopt;
    sum += *weight;
  }
  return sum;
}

/// Those of an element.
static unsigned getBits(Value tensor) {
  return getElementTypeOrSelf(tensor).getIntOrFloatBitWidth();
}

/// Clones `ops` one behind the other; `mapping` gets their results.
static SmallVector<Operation *> cloneInPlace(ArrayRef<Operation *> ops,
                                             IRMapping &mapping) {
  OpBuilder b(ops.back()->getContext());
  return llvm::map_to_vector(ops, [&](Operation *op) {
    b.setInsertionPointAfter(op);
    return b.clone(*op, mapping);
  });
}

bool FusionClusters::copyProducer(Value value, unsigned cluster) {
  constexpr unsigned kMaxWeight = 16;
  auto it = clusterOf.find(value.getDefiningOp());
  if (it == clusterOf.end() || it->second == cluster)
    return false;
  unsigned home = it->second;
  // What is computed again, in the order of the block: all that has an element
  // for each of the domain. What has one for a row is read.
  llvm::SetVector<Operation *> copied;
  llvm::SmallSetVector<Value, 4> read;
  unsigned weight = 0;
  std::function<bool(Value)> visit = [&](Value needed) {
    Operation *op = needed.getDefiningOp();
    if (!op || clusterOf.lookup_or(op, ~0u) != home ||
        !isOfDomain(needed, layouts[home])) {
      read.insert(needed);
      return true;
    }
    if (copied.contains(op))
      return true;
    std::optional<unsigned> own = getWeightOfBody(op);
    if (!own || (weight += *own) > kMaxWeight)
      return false;
    for (Value operand : cast<linalg::GenericOp>(op).getInputs())
      if (!visit(operand))
        return false;
    copied.insert(op);
    return true;
  };
  if (!visit(value) || copied.empty())
    return false;

  unsigned bits = 0;
  for (Value source : read) {
    if (!isa<RankedTensorType>(source.getType()))
      return false;
    bool isReadAnyway = llvm::any_of(source.getUsers(), [&](Operation *user) {
      return llvm::is_contained(clusters[cluster], user);
    });
    if (isOfDomain(source, layouts[home]) && !isReadAnyway)
      bits += getBits(source);
  }
  // As much to read is less to write, where nobody else needs the value.
  bool isWritten = llvm::any_of(value.getUsers(), [&](Operation *user) {
    unsigned other = clusterOf.lookup_or(user, ~0u);
    return other != home && other != cluster;
  });
  if (bits > getBits(value) || (bits == getBits(value) && isWritten))
    return false;

  Cluster ops(copied.begin(), copied.end());
  ops.append(clusters[cluster]);
  FusionLayouts extended(layouts[cluster].getDomain());
  std::string reason;
  for (Operation *op : ops)
    if (failed(extended.add(op, reason))) {
      LDBG() << "not computed again: " << reason << ": " << value;
      return false;
    }
  if (countTensors(ops, extended) > kMaxFusionTensors)
    return false;

  LDBG() << "computed again: " << value;
  IRMapping mapping;
  Cluster copies(cloneInPlace(copied.getArrayRef(), mapping));
  for (Operation *copy : copies)
    clusterOf[copy] = cluster;
  value.replaceUsesWithIf(mapping.lookup(value), [&](OpOperand &use) {
    return llvm::is_contained(clusters[cluster], use.getOwner());
  });
  clusters[cluster].insert(clusters[cluster].begin(), copies.begin(),
                           copies.end());
  layouts[cluster] = FusionLayouts(extended.getDomain());
  for (Operation *op : clusters[cluster])
    (void)layouts[cluster].add(op, reason);
  eraseUnused(value.getDefiningOp());
  return true;
}

void FusionClusters::eraseUnused(Operation *op) {
  auto it = clusterOf.find(op);
  if (it == clusterOf.end() || !op->use_empty() || !isa<linalg::GenericOp>(op))
    return;
  llvm::erase(clusters[it->second], op);
  clusterOf.erase(it);
  auto operands = llvm::to_vector(op->getOperands());
  op->erase();
  for (Value operand : operands)
    if (Operation *definition = operand.getDefiningOp())
      eraseUnused(definition);
}

void FusionClusters::copyProducers() {
  for (unsigned number = 0; number < clusters.size(); ++number) {
    llvm::SetVector<Value> read;
    for (Operation *op : clusters[number])
      for (Value operand : op->getOperands())
        read.insert(operand);
    for (Value value : read)
      copyProducer(value, number);
  }
}
