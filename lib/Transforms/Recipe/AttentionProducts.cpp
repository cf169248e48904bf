//===- AttentionProducts.cpp - Products around a softmax ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionProducts.h"
#include "ComputedWeights.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// What follows from an exponential of scores, or from shares that a function
/// is given.
struct Follower {
  Value exponential;
  /// Where its value has each dimension of the exponential, -1 for nowhere.
  SmallVector<int64_t> dims;
  /// Whether it is shares, at most times or by something.
  bool isShare;
};

/// A product that has such a value as an operand.
struct Use {
  linalg::LinalgOp product;
  unsigned operand;
  Follower value;
  /// Products without weights that the operand is computed of in other ways
  /// than by exponentials: of a gradient of scores, that of shares.
  SmallVector<Operation *, 2> others = {};

  bool isOfShares() const { return value.isShare && others.empty(); }
};

/// What becomes of the scores that one product computes, or of shares that a
/// forward has kept.
class Scores {
public:
  /// `shares` are known to be shares, of whatever scores.
  Scores(linalg::LinalgOp product, ComputedWeights &weights,
         const DenseSet<Value> &shares)
      : product(product), weights(weights), shares(shares) {}

  /// `saved` is an argument of a backward.
  Scores(BlockArgument saved, ComputedWeights &weights,
         const DenseSet<Value> &shares)
      : saved(saved), weights(weights), shares(shares) {}

  /// Whether they are attention's; `uses` are its other products then.
  bool find();
  /// The same for shares that a function is given. Those of a softmax have a
  /// gradient that the sum of them times theirs is taken from.
  bool findSaved();
  ArrayRef<Use> getUses() const { return uses; }
  /// Adds what are shares of these scores, if something sums them.
  void addShares(DenseSet<Value> &result) const {
    for (const auto &[value, follower] : values)
      if (follower.isShare && keys.contains(follower.exponential))
        result.insert(value);
  }
  /// Whether the product of `use` sums over keys.
  bool sumsKeys(const Use &use) const;

private:
  bool isForeign(Value value) const {
    return shares.contains(value) && !values.contains(value);
  }
  bool findExponentials();
  void followAll(Operation *first);
  bool mayHaveLearnedQuery();
  bool isLearnedQuery();
  bool isGradient(const Use &use) const;
  void findKeys();
  void findOthers(Use &use) const;
  void follow(Operation *op);
  void followLinalg(linalg::LinalgOp op);
  void followReshape(Operation *op, Value source,
                     ArrayRef<ReassociationIndices> groups, bool isCollapse);

  linalg::LinalgOp product;
  BlockArgument saved;
  ComputedWeights &weights;
  const DenseSet<Value> &shares;
  llvm::SmallSetVector<Value, 2> exponentials;
  llvm::DenseMap<Value, Follower> values;
  SmallVector<Use> uses;
  /// Sums of shares over keys, times what else there is.
  SmallVector<Use> sums;
  /// The dimension of keys of each exponential, -1 for one nobody knows of.
  llvm::DenseMap<Value, int64_t> keys;
};
} // namespace

static bool isProduct(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && isContraction(linalgOp);
}

/// Whether `op` computes numbers of tensors one by one, or moves them.
static bool isFollowed(Operation *op) {
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

/// Whether what `use` multiplies is a gradient of scores: shares times what a
/// product makes, less their sum.
bool Scores::isGradient(const Use &use) const {
  if (use.others.empty())
    return false;
  llvm::SmallPtrSet<Operation *, 4> own;
  for (const Use &sum : sums)
    if (llvm::any_of(sum.others, [&](Operation *op) {
          return llvm::is_contained(use.others, op);
        }))
      own.insert(sum.product);
  SmallVector<Value> worklist{use.product->getOperand(use.operand)};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || !isFollowed(op) || !seen.insert(op).second)
      continue;
    if (own.contains(op))
      return true;
    llvm::append_range(worklist, op->getOperands());
  }
  return false;
}

bool Scores::findSaved() {
  auto type = cast<RankedTensorType>(saved.getType());
  exponentials.insert(saved);
  values.try_emplace(
      saved,
      Follower{saved, llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())),
               true});
  followAll(&saved.getOwner()->front());
  for (Use &sum : sums)
    findOthers(sum);
  return !keys.empty() &&
         llvm::any_of(uses, [&](const Use &use) { return isGradient(use); });
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

/// Whether `argument` may be shares that a forward has kept.
static bool mayBeShares(BlockArgument argument, const GemmRoles &roles) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  return type && type.getRank() >= 2 && isa<FloatType>(type.getElementType()) &&
         !roles.isMarkedWeight(argument) && !roles.isGradient(argument);
}

AttentionProducts::AttentionProducts(FunctionOpInterface function,
                                     const GemmRoles &roles) {
  SmallVector<linalg::LinalgOp> all;
  ComputedWeights weights(function, roles);
  function->walk([&](linalg::LinalgOp op) {
    if (isContraction(op) && op->getNumResults() == 1)
      all.push_back(op);
  });
  DenseSet<Value> shares, none;
  for (linalg::LinalgOp op : all) {
    Scores scores(op, weights, none);
    scores.find();
    scores.addShares(shares);
  }
  auto add = [&](const Scores &scores) {
    llvm::SmallSetVector<Operation *, 4> others;
    llvm::SmallPtrSet<Value, 4> gradients;
    for (const Use &use : scores.getUses()) {
      bool sums = scores.sumsKeys(use);
      AttentionProduct found{sums ? AttentionRole::PV : AttentionRole::DV,
                             std::nullopt};
      if (!use.isOfShares()) {
        found = {sums ? AttentionRole::DQ : AttentionRole::DK, use.operand};
        others.insert(use.others.begin(), use.others.end());
      } else if (!sums) {
        found.gradient = 1 - use.operand;
        gradients.insert(
            GemmRoles::getSource(use.product->getOperand(1 - use.operand)));
      }
      products.insert({use.product, found});
    }
    for (Operation *other : others) {
      bool isFirst =
          !gradients.contains(GemmRoles::getSource(other->getOperand(1)));
      products.insert({other, {AttentionRole::DP, isFirst ? 0 : 1}});
    }
  };
  for (linalg::LinalgOp op : all) {
    Scores scores(op, weights, shares);
    if (!scores.find())
      continue;
    products.insert({op, {AttentionRole::QK, std::nullopt}});
    add(scores);
  }
  // A product without an operand of weights is of a gradient and values.
  bool hasOthers = llvm::any_of(all, [&](linalg::LinalgOp op) {
    return !products.contains(op) && !weights.isOperandOf(op);
  });
  if (!hasOthers || function.isExternal())
    return;
  for (BlockArgument argument : function.getArguments()) {
    if (!mayBeShares(argument, roles))
      continue;
    Scores scores(argument, weights, none);
    if (scores.findSaved())
      add(scores);
  }
}
