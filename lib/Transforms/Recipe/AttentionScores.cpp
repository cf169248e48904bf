//===- AttentionScores.cpp - What becomes of scores or shares -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionScores.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::fp8;

static bool isProduct(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && isContraction(linalgOp);
}

bool fp8::isFollowed(Operation *op) {
  if (op->getNumResults() == 0 || isProduct(op))
    return false;
  return isa<linalg::LinalgOp, linalg::SoftmaxOp>(op) ||
         isa_and_present<tensor::TensorDialect, arith::ArithDialect,
                         math::MathDialect>(op->getDialect());
}

static bool isExponential(Operation *op) {
  if (!isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  if (isa<math::ExpOp, math::Exp2Op, linalg::SoftmaxOp>(op))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumReductionLoops() == 0 &&
         llvm::any_of(*linalgOp.getBlock(),
                      llvm::IsaPred<math::ExpOp, math::Exp2Op>);
}

static Value skipCasts(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether what `op` computes of shares is shares still: times or by something,
/// chosen or cast.
static bool keepsShares(Operation *op, function_ref<bool(Value)> isShare) {
  if (isa<arith::DivFOp>(op))
    return !isShare(op->getOperand(1));
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return !isShare(select.getCondition());
  return isa<arith::MulFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(op);
}

namespace {
/// What a value is to the exponentials of one product's scores.
enum class Dependence {
  None,
  Share,
  /// Shares of scores that another product computes.
  Foreign,
  Other
};
} // namespace

static Dependence follow(Operation *op,
                         function_ref<Dependence(Value)> lookup) {
  auto depends = [&](Dependence dependence) {
    return llvm::any_of(op->getOperands(), [&](Value value) {
      return lookup(value) == dependence;
    });
  };
  bool isShare = depends(Dependence::Share);
  bool isForeign = depends(Dependence::Foreign);
  if (depends(Dependence::Other))
    return Dependence::Other;
  if (!isShare && !isForeign)
    return Dependence::None;
  // What two softmaxes differ by, as in differential attention.
  if (isShare && isForeign)
    return isa<arith::SubFOp>(op) ? Dependence::Share : Dependence::Other;
  auto isEither = [&](Value value) {
    return lookup(value) != Dependence::None;
  };
  if (!keepsShares(op, isEither))
    return Dependence::Other;
  return isShare ? Dependence::Share : Dependence::Foreign;
}

using Dependences = llvm::SmallDenseMap<Value, Dependence, 8>;

/// What a result of a body is, of values in it that are known.
static Dependence follow(Block &body, Dependences known, unsigned result) {
  auto lookup = [&](Value value) { return known.lookup(value); };
  for (Operation &op : body.without_terminator()) {
    if (op.getNumResults() != 1 || known.contains(op.getResult(0)))
      continue;
    known[op.getResult(0)] = follow(&op, lookup);
  }
  return known.lookup(body.getTerminator()->getOperand(result));
}

/// Whether `op` is a sum of its one operand, nothing else.
static bool isSum(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1)
    return false;
  auto add = op.getBlock()
                 ->getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<arith::AddFOp>();
  if (!add)
    return false;
  Block *body = op.getBlock();
  Value lhs = skipCasts(add.getLhs()), rhs = skipCasts(add.getRhs());
  return (lhs == body->getArgument(0) && rhs == body->getArgument(1)) ||
         (lhs == body->getArgument(1) && rhs == body->getArgument(0));
}

bool Scores::findExponentials() {
  SmallVector<Value> worklist{product->getResult(0)};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      if (!isFollowed(user) || !seen.insert(user).second)
        continue;
      if (isExponential(user))
        exponentials.insert(user->getResult(0));
      else
        llvm::append_range(worklist, user->getResults());
    }
  return !exponentials.empty();
}

/// Where the results of `op` have what an operand has in `dims`.
static SmallVector<int64_t> mapDims(AffineMap from, AffineMap to,
                                    ArrayRef<int64_t> dims) {
  SmallVector<int64_t> result;
  for (int64_t dim : dims) {
    result.push_back(-1);
    if (dim < 0)
      continue;
    for (auto [index, expr] : llvm::enumerate(to.getResults()))
      if (isa<AffineDimExpr>(expr) && expr == from.getResult(dim))
        result.back() = index;
  }
  return result;
}

/// Whether the loop of a dimension that `map` has is summed over.
static bool isReduced(linalg::LinalgOp op, AffineMap map, int64_t dim) {
  auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
  return loop && op.getIteratorTypesArray()[loop.getPosition()] ==
                     utils::IteratorType::reduction;
}

void Scores::followLinalg(linalg::LinalgOp op) {
  bool isUse = isProduct(op);
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto found = values.find(operand->get());
    if (found == values.end())
      continue;
    Follower value = found->second;
    AffineMap map = op.getMatchingIndexingMap(operand);
    if (isUse) {
      uses.push_back({op, operand->getOperandNumber(), value});
      continue;
    }
    if (op.getNumReductionLoops() != 0) {
      if (!value.isShare || !isSum(op))
        continue;
      for (auto [index, dim] : llvm::enumerate(value.dims))
        if (dim >= 0 && isReduced(op, map, dim))
          keys.try_emplace(value.exponential, index);
      sums.push_back({op, operand->getOperandNumber(), value});
      continue;
    }
    Dependences known;
    for (OpOperand *other : op.getDpsInputOperands())
      if (isForeign(other->get()))
        known[op.getMatchingBlockArgument(other)] = Dependence::Foreign;
    known[op.getMatchingBlockArgument(operand)] = Dependence::Share;
    for (OpResult result : op->getResults()) {
      Dependence dependence =
          ::follow(*op.getBlock(), known, result.getResultNumber());
      if (dependence == Dependence::None)
        continue;
      AffineMap to = op.getIndexingMapMatchingResult(result);
      values.try_emplace(
          result, Follower{value.exponential, mapDims(map, to, value.dims),
                           value.isShare && dependence == Dependence::Share});
    }
  }
}

void Scores::followReshape(Operation *op, Value source,
                           ArrayRef<ReassociationIndices> groups,
                           bool isCollapse) {
  auto found = values.find(source);
  if (found == values.end())
    return;
  Follower value = found->second;
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  for (int64_t &dim : value.dims)
    if (dim >= 0 && isCollapse) {
      auto group = llvm::find_if(groups, [&](const ReassociationIndices &each) {
        return llvm::is_contained(each, dim);
      });
      // No group is left of a tensor of one element.
      dim = group == groups.end() ? -1 : group - groups.begin();
    } else if (dim >= 0) {
      // That of several which has more than one element.
      const ReassociationIndices &group = groups[dim];
      dim = group.front();
      for (int64_t part : group)
        if (result.getDimSize(part) != 1)
          dim = part;
    }
  values.try_emplace(op->getResult(0), std::move(value));
}

void Scores::follow(Operation *op) {
  if (op->getNumResults() != 0 && exponentials.contains(op->getResult(0))) {
    bool isShare = true;
    Value result = op->getResult(0);
    int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
    if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
      keys[result] = softmax.getDimension();
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      Dependences shares;
      for (Operation &each : *linalgOp.getBlock())
        if (isa<math::ExpOp, math::Exp2Op>(each))
          shares[each.getResult(0)] = Dependence::Share;
      isShare = ::follow(*linalgOp.getBlock(), shares, 0) == Dependence::Share;
    }
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    values.try_emplace(result, Follower{result, std::move(dims), isShare});
    return;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return followLinalg(linalgOp);
  if (!isFollowed(op))
    return;
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return followReshape(op, collapse.getSrc(),
                         collapse.getReassociationIndices(), true);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return followReshape(op, expand.getSrc(), expand.getReassociationIndices(),
                         false);
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  for (Value operand : op->getOperands()) {
    auto found = values.find(operand);
    if (!type || found == values.end())
      continue;
    Follower value = found->second;
    auto from = dyn_cast<RankedTensorType>(operand.getType());
    if (!from || from.getRank() != type.getRank())
      value.dims.assign(value.dims.size(), -1);
    auto lookup = [&](Value each) {
      if (values.contains(each))
        return Dependence::Share;
      return isForeign(each) ? Dependence::Foreign : Dependence::None;
    };
    bool isMove = isa<tensor::TensorDialect>(op->getDialect());
    value.isShare &= isMove || ::follow(op, lookup) == Dependence::Share;
    values.try_emplace(op->getResult(0), std::move(value));
  }
}

void Scores::findKeys() {
  auto known = llvm::find_if(exponentials,
                             [&](Value value) { return keys.contains(value); });
  if (known == exponentials.end())
    return;
  auto getRank = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank();
  };
  // A backward may compute shares again, of sums that it has.
  int64_t rank = getRank(*known), dim = keys.lookup(*known);
  for (Value value : exponentials)
    keys.try_emplace(value, getRank(value) == rank ? dim : -1);
}

void Scores::followAll(Operation *first) {
  // In the order of the program, so that operands come before what has them.
  for (Operation *op = first; op; op = op->getNextNode())
    follow(op);
  findKeys();
  for (Use &use : uses)
    findOthers(use);
  hasWeightOfKeys = llvm::any_of(uses, [&](const Use &use) {
    return weights.isOperandOf(use.product) && sumsKeys(use);
  });
  // What has been added to, but for a gradient, is a loss's.
  llvm::erase_if(uses, [&](const Use &use) {
    return weights.isOperandOf(use.product) ||
           (!use.value.isShare && use.others.empty());
  });
}

bool Scores::find() {
  bool hasWeight = weights.isOperandOf(product);
  if ((hasWeight && !mayHaveLearnedQuery()) || !findExponentials())
    return false;
  followAll(product->getNextNode());
  return !keys.empty() &&
         llvm::any_of(uses, [](const Use &use) { return use.isOfShares(); }) &&
         (!hasWeight || isLearnedQuery());
}

/// Whether a layer has made what a weight is multiplied with.
bool Scores::mayHaveLearnedQuery() {
  bool isSecond = weights.isWeight(product->getOperand(1));
  Value other = product->getOperand(isSecond ? 0 : 1);
  return !weights.isWeight(other) && weights.isProjection(other);
}

/// A weight is a query where shares are of the other operand's rows: what
/// chooses experts has a share for each of the weight's.
bool Scores::isLearnedQuery() {
  unsigned weight = weights.isWeight(product->getOperand(1)) ? 1 : 0;
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  SmallVector<int64_t> extents = product.getStaticLoopRanges();
  auto has = [&](unsigned loop, int64_t extent, unsigned operand) {
    return extents[loop] == extent && maps[2].isFunctionOfDim(loop) &&
           maps[operand].isFunctionOfDim(loop) &&
           !maps[1 - operand].isFunctionOfDim(loop);
  };
  auto loops = llvm::seq<unsigned>(0, extents.size());
  return llvm::all_of(exponentials, [&](Value exponential) {
    int64_t dim = keys.lookup(exponential);
    auto type = cast<RankedTensorType>(exponential.getType());
    if (dim < 0 || type.isDynamicDim(dim))
      return false;
    int64_t extent = type.getDimSize(dim);
    return llvm::any_of(
               loops,
               [&](unsigned loop) { return has(loop, extent, 1 - weight); }) &&
           llvm::none_of(
               loops, [&](unsigned loop) { return has(loop, extent, weight); });
  });
}

bool Scores::sumsKeys(const Use &use) const {
  int64_t key = keys.lookup(use.value.exponential);
  int64_t dim = key < 0 ? -1 : use.value.dims[key];
  linalg::LinalgOp op = use.product;
  return dim < 0 ||
         isReduced(op,
                   op.getMatchingIndexingMap(&op->getOpOperand(use.operand)),
                   dim);
}

void Scores::findOthers(Use &use) const {
  SmallVector<Value> worklist{use.product->getOperand(use.operand)};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(op).second || exponentials.contains(value) ||
        isForeign(value))
      continue;
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (linalgOp && isContraction(linalgOp)) {
      if (op != product && !weights.isOperandOf(linalgOp))
        use.others.push_back(op);
    } else if (linalgOp && linalgOp.getNumReductionLoops() == 0) {
      llvm::append_range(worklist, linalgOp.getDpsInputs());
    } else if (!linalgOp && isFollowed(op)) {
      llvm::append_range(worklist, op->getOperands());
    }
  }
}
