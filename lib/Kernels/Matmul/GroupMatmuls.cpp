//===- GroupMatmuls.cpp - Matmuls of one operand as one launch ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A matmul alone may have too few tiles for the multiprocessors, or a last
// round of few: K and V of an attention have a quarter of Q's columns, or an
// eighth. Together they fill them, and wait once for the launch and for the
// first bytes from memory. And where the halves of a gated MLP meet in a tile,
// one of them need not go through memory at all.

#include "../TargetLookup.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_GROUPMATMULSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// More are several groups: a kernel selects among as many tensor maps.
static constexpr size_t kMaxMatmuls = 8;

namespace {
/// What one launch is to compute.
struct Candidate {
  SmallVector<MatmulOp> matmuls;
  bool sharesA;
  KernelConfigAttrInterface config;
  /// Clocks; unknown extents count as usual ones.
  double cost;
};

struct GroupMatmulsPass : fp8::impl::GroupMatmulsPassBase<GroupMatmulsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  void runOnOperation() override;
  void group(ArrayRef<MatmulOp> matmuls, bool sharesA,
             const KernelTarget &target);
  /// With a config and its cost; nothing if no kernel computes it.
  std::optional<Candidate> select(ArrayRef<MatmulOp> matmuls, bool sharesA,
                                  const KernelTarget &target);
  std::optional<Candidate> select(ArrayRef<MatmulOp> matmuls, bool sharesA,
                                  const FailureOr<MatmulSpec> &spec,
                                  const KernelTarget &target);
  /// One launch for those of all parts, if that is possible and takes no
  /// longer.
  std::optional<Candidate> join(ArrayRef<Candidate> parts,
                                const KernelTarget &target);
  /// The group, in the last one's place, with what needs the others `after` it.
  void form(const Candidate &candidate, ArrayRef<Operation *> after);
  /// One launch for `second` and the matmul whose result its epilogue reads, if
  /// there is one and that takes no longer.
  void pairUp(MatmulOp second, const KernelTarget &target);
};
} // namespace

/// Clocks that one launch saves.
static double getSaved(ArrayRef<Candidate> parts, const Candidate &joined) {
  double cost = 0;
  for (const Candidate &part : parts)
    cost += part.cost;
  return cost - joined.cost;
}

std::optional<Candidate> GroupMatmulsPass::select(ArrayRef<MatmulOp> matmuls,
                                                  bool sharesA,
                                                  const KernelTarget &target) {
  std::string unused;
  return select(matmuls, sharesA,
                MatmulSpec::joinSiblings(matmuls, sharesA, unused), target);
}

std::optional<Candidate>
GroupMatmulsPass::select(ArrayRef<MatmulOp> matmuls, bool sharesA,
                         const FailureOr<MatmulSpec> &spec,
                         const KernelTarget &target) {
  std::string unused;
  if (failed(spec))
    return std::nullopt;
  FailureOr<SelectedKernel> kernel = selectKernel(*spec, target, unused);
  if (failed(kernel))
    return std::nullopt;
  return Candidate{SmallVector<MatmulOp>(matmuls), sharesA, kernel->config,
                   kernel->getCost(*spec, target)};
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// The operations before the last of `matmuls`, of one block and in order, that
/// need one of them; nothing if one of the matmuls does, or something that has
/// to stay where it is.
static std::optional<SmallVector<Operation *>>
getDependents(ArrayRef<MatmulOp> matmuls) {
  llvm::SmallPtrSet<Operation *, 8> members, needing;
  for (MatmulOp op : matmuls)
    members.insert(op);
  SmallVector<Operation *> dependents;
  Block *block = matmuls.front()->getBlock();
  auto needs = [&](Operation *op) {
    WalkResult found = op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *source = operand.getDefiningOp();
        source = source ? block->findAncestorOpInBlock(*source) : nullptr;
        if (source && source != op &&
            (members.contains(source) || needing.contains(source)))
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return found.wasInterrupted();
  };
  for (Operation *op = matmuls.front()->getNextNode();
       op != matmuls.back()->getNextNode(); op = op->getNextNode()) {
    if (!needs(op))
      continue;
    if (members.contains(op) || !isMemoryEffectFree(op))
      return std::nullopt;
    needing.insert(op);
    dependents.push_back(op);
  }
  return dependents;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

void GroupMatmulsPass::form(const Candidate &candidate,
                            ArrayRef<Operation *> after) {
  ArrayRef<MatmulOp> matmuls = candidate.matmuls;
  MatmulOp last = matmuls.back();
  SmallVector<Location> locations;
  SmallVector<Type> types;
  SmallVector<Value> results;
  for (MatmulOp op : matmuls) {
    locations.push_back(op.getLoc());
    // Leave out what a pair's second one alone reads.
    if (llvm::is_contained(last.getEpilogueOperands(), op.getResult()))
      continue;
    llvm::append_range(types, op->getResultTypes());
    llvm::append_range(results, op->getResults());
  }
  OpBuilder builder(last);
  Location loc = builder.getFusedLoc(locations);
  auto group = SiblingMatmulsOp::create(builder, loc, types);
  group->setAttr(kConfigAttrName, candidate.config);
  for (Operation *op : llvm::reverse(after))
    op->moveAfter(last);
  for (auto [result, replaced] : llvm::zip_equal(group.getResults(), results))
    replaced.replaceAllUsesWith(result);
  Block *body = builder.createBlock(&group.getBody());
  for (MatmulOp op : matmuls) {
    op->removeAttr(kConfigAttrName);
    op->moveBefore(body, body->end());
  }
  YieldOp::create(builder, loc, results);
  ++numGroups;
  numGrouped += matmuls.size();
}

std::optional<Candidate> GroupMatmulsPass::join(ArrayRef<Candidate> parts,
                                                const KernelTarget &target) {
  SmallVector<MatmulOp> matmuls;
  for (const Candidate &part : parts)
    llvm::append_range(matmuls, part.matmuls);
  llvm::sort(matmuls, [](MatmulOp lhs, MatmulOp rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
  if (!getDependents(matmuls))
    return std::nullopt;
  std::optional<Candidate> joined =
      select(matmuls, parts.front().sharesA, target);
  if (!joined)
    return std::nullopt;
  return getSaved(parts, *joined) >= 0 ? joined : std::nullopt;
}

void GroupMatmulsPass::group(ArrayRef<MatmulOp> matmuls, bool sharesA,
                             const KernelTarget &target) {
  SmallVector<Candidate> parts;
  for (MatmulOp op : matmuls) {
    // Few rows have kernels that others do not want, and a group has one.
    auto range = op->getAttrOfType<DenseI64ArrayAttr>(kRowsAttrName);
    if (range && range[1] < MatmulSpec::kUsualExtent)
      continue;
    std::optional<Candidate> alone = select(op, sharesA, target);
    // Any other config is from somebody who knew better.
    if (alone && alone->config == op->getAttr(kConfigAttrName))
      parts.push_back(std::move(*alone));
  }
  if (parts.size() < 2)
    return;
  std::optional<Candidate> all = join(parts, target);
  // Join the two that save most, one after the other.
  while (parts.size() > 1) {
    std::optional<Candidate> best;
    double mostSaved = 0;
    size_t first = 0, second = 0;
    for (size_t i = 0; i < parts.size(); ++i)
      for (size_t j = i + 1; j < parts.size(); ++j) {
        Candidate pair[] = {parts[i], parts[j]};
        std::optional<Candidate> joined = join(pair, target);
        double saved = joined ? getSaved(pair, *joined) : 0;
        if (joined && (!best || saved > mostSaved)) {
          best = std::move(joined);
          mostSaved = saved;
          first = i;
          second = j;
        }
      }
    if (!best)
      break;
    parts.erase(parts.begin() + second);
    parts[first] = std::move(*best);
  }
  if (all && getSaved(parts, *all) >= 0)
    parts.assign(1, std::move(*all));
  for (const Candidate &part : parts)
    if (part.matmuls.size() > 1)
      form(part, *getDependents(part.matmuls));
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

/// The matmul of the same A whose result the epilogue of `second`, and nobody
/// else, reads element for element; null if there is none.
static MatmulOp getFirst(MatmulOp second) {
  for (Value operand : second.getEpilogueOperands()) {
    auto first = operand.getDefiningOp<MatmulOp>();
    if (first && first->getBlock() == second->getBlock() &&
        first.getA() == second.getA() && first.getResult().hasOneUse() &&
        !first.getAmax() &&
        first.getResult().getType().getShape() ==
            second.getResult().getType().getShape())
      return first;
  }
  return nullptr;
}

/// Clocks in which memory moves the result that no longer goes there and back.
static double getTraffic(MatmulOp op, const KernelTarget &target) {
  RankedTensorType type = op.getResult().getType();
  double bytes = type.getElementTypeBitWidth() / 8.0;
  for (int64_t extent : type.getShape())
    bytes *= ShapedType::isDynamic(extent) ? MatmulSpec::kUsualExtent : extent;
  GPUTargetAttr attribute = target.attribute;
  return 2 * bytes /
         (attribute.getMemoryRate() * attribute.getMultiprocessors());
}

void GroupMatmulsPass::pairUp(MatmulOp second, const KernelTarget &target) {
  MatmulOp first = getFirst(second);
  if (!first || !first->hasAttr(kConfigAttrName))
    return;
  std::optional<Candidate> parts[] = {select(first, true, target),
                                      select(second, true, target)};
  for (auto [part, op] : llvm::zip_equal(parts, ArrayRef{first, second}))
    if (!part || part->config != op->getAttr(kConfigAttrName))
      return;
  std::string unused;
  std::optional<Candidate> pair =
      select({first, second}, true, MatmulSpec::joinDual(first, second, unused),
             target);
  if (!pair)
    return;
  if (getSaved(ArrayRef{*parts[0], *parts[1]}, *pair) +
          getTraffic(first, target) <
      0)
    return;
  // Nothing but the second needs the first.
  form(*pair, /*after=*/{});
  ++numPairs;
}

/// Groups that came with the program and that no kernel computes: their matmuls
/// have kernels of their own, or none.
static void takeApart(Operation *root) {
  IRRewriter rewriter(root->getContext());
  root->walk([&](SiblingMatmulsOp group) {
    if (group->hasAttr(kConfigAttrName))
      return;
    Operation *yield = group.getBody().front().getTerminator();
    rewriter.inlineBlockBefore(&group.getBody().front(), group);
    rewriter.replaceOp(group, yield->getOperands());
    rewriter.eraseOp(yield);
  });
}

void GroupMatmulsPass::runOnOperation() {
  takeApart(getOperation());
  FailureOr<KernelTarget> target = failure();
  SmallVector<MatmulOp> readers;
  getOperation().walk([&](MatmulOp op) {
    if (op->hasAttr(kConfigAttrName) && getFirst(op))
      readers.push_back(op);
  });
  if (!readers.empty() && failed(target = lookupTarget(getOperation())))
    return signalPassFailure();
  for (MatmulOp op : readers)
    pairUp(op, *target);
  for (bool sharesA : {true, false}) {
    // By block and operand.
    llvm::MapVector<std::pair<Block *, Value>, SmallVector<MatmulOp>> siblings;
    getOperation().walk([&](MatmulOp op) {
      if (op->hasAttr(kConfigAttrName))
        siblings[{op->getBlock(), sharesA ? op.getA() : op.getB()}].push_back(
            op);
    });
    for (auto &[place, matmuls] : siblings) {
      if (matmuls.size() < 2)
        continue;
      if (failed(target) && failed(target = lookupTarget(getOperation())))
        return signalPassFailure();
      for (ArrayRef<MatmulOp> rest = matmuls; rest.size() > 1;
           rest = rest.drop_front(std::min(rest.size(), kMaxMatmuls)))
        group(rest.take_front(kMaxMatmuls), sharesA, *target);
    }
  }
}
