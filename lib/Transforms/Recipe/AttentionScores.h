//===- AttentionScores.h - What becomes of scores or shares -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_RECIPE_ATTENTIONSCORES_H
#define FP8_LIB_TRANSFORMS_RECIPE_ATTENTIONSCORES_H

#include "ComputedWeights.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {

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
  /// gradient that the sum of them times theirs is taken from. So has what a
  /// norm made smaller, but that gradient is a layer's: a weight multiplies it.
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
  /// Whether a product with a weight sums over keys.
  bool hasWeightOfKeys = false;
};

/// Whether `op` computes numbers of tensors one by one, or moves them.
bool isFollowed(Operation *op);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_RECIPE_ATTENTIONSCORES_H
