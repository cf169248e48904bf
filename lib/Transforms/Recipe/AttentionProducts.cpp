//===- AttentionProducts.cpp - Products around a softmax ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionProducts.h"
#include "AttentionScores.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether `argument` may be shares that a forward has kept.
static bool mayBeShares(BlockArgument argument, const GemmRoles &roles) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  return type && type.getRank() >= 2 && isa<FloatType>(type.getElementType()) &&
         !roles.isMarkedWeight(argument) && !roles.isGradient(argument);
}

using Products = llvm::DenseMap<Operation *, AttentionProduct>;

static AttentionRole getRole(const Scores &scores, const Use &use) {
  bool sums = scores.sumsKeys(use);
  if (use.isOfShares())
    return sums ? AttentionRole::PV : AttentionRole::DV;
  return sums ? AttentionRole::DQ : AttentionRole::DK;
}

/// Whether it is a gradient of queries, keys or values.
static bool isOfInputs(AttentionRole role) {
  return role == AttentionRole::DQ || role == AttentionRole::DK ||
         role == AttentionRole::DV;
}

static void add(const Scores &scores, Products &products) {
  llvm::SmallSetVector<Operation *, 4> others;
  llvm::SmallPtrSet<Value, 4> gradients;
  for (const Use &use : scores.getUses()) {
    AttentionProduct found{getRole(scores, use), std::nullopt};
    if (!use.isOfShares()) {
      found.gradient = use.operand;
      others.insert(use.others.begin(), use.others.end());
    } else if (found.role == AttentionRole::DV) {
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
}

/// Adds what follows from shares that are arguments. Queries and keys with a
/// norm have a gradient that looks like one of scores, but follows from what
/// other shares have as theirs.
static void addSaved(FunctionOpInterface function, const GemmRoles &roles,
                     ComputedWeights &weights, Products &products) {
  DenseSet<Value> none;
  SmallVector<Scores, 0> candidates;
  for (BlockArgument argument : function.getArguments()) {
    if (!mayBeShares(argument, roles))
      continue;
    Scores scores(argument, weights, none);
    if (scores.findSaved())
      candidates.push_back(std::move(scores));
  }
  DenseSet<Operation *> ofInputs;
  for (const auto &[op, product] : products)
    if (isOfInputs(product.role))
      ofInputs.insert(op);
  for (const Scores &scores : candidates)
    for (const Use &use : scores.getUses())
      if (isOfInputs(getRole(scores, use)))
        ofInputs.insert(use.product);
  for (const Scores &scores : candidates)
    if (llvm::none_of(scores.getUses(), [&](const Use &use) {
          return llvm::any_of(use.others, [&](Operation *other) {
            return ofInputs.contains(other);
          });
        }))
      add(scores, products);
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
  for (linalg::LinalgOp op : all) {
    Scores scores(op, weights, shares);
    if (!scores.find())
      continue;
    products.insert({op, {AttentionRole::QK, std::nullopt}});
    add(scores, products);
  }
  // A product without an operand of weights is of a gradient and values.
  bool hasOthers = llvm::any_of(all, [&](linalg::LinalgOp op) {
    return !products.contains(op) && !weights.isOperandOf(op);
  });
  if (hasOthers && !function.isExternal())
    addSaved(function, roles, weights, products);
}
