//===- SavedScores.cpp - Shares that a forward has kept -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionScores.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::fp8;

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
  return !keys.empty() && !hasWeightOfKeys &&
         llvm::any_of(uses, [&](const Use &use) { return isGradient(use); });
}
