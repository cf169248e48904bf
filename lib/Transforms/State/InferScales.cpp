//===- InferScales.cpp - Scales as SSA values -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: quantizes that name a recipe. Leaves: quantizes with their scale.
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-infer-scales"

namespace mlir::fp8 {
#define GEN_PASS_DEF_INFERSCALESPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct InferScalesPass : fp8::impl::InferScalesPassBase<InferScalesPass> {
  using Base::Base;
  void runOnOperation() override;
  LogicalResult resolve(QuantizeOp op);
  Value measure(OpBuilder &builder, QuantizeOp op, ArrayRef<int64_t> block);

  /// What ranks have reduced of a tensor, in the block where they did: nothing
  /// merges reductions later.
  llvm::MapVector<std::pair<Value, Block *>, AllReduceAmaxOp> reduced;
};
} // namespace

/// The amaxes of a tensor's blocks; that of a whole one, of which the ranks of
/// a group may have parts, is the largest that any of them has.
Value InferScalesPass::measure(OpBuilder &builder, QuantizeOp op,
                               ArrayRef<int64_t> block) {
  Location loc = op.getLoc();
  bool propagateNaN = op.getRecipeAttr().propagatesNaN();
  StringAttr group = getAmaxGroup(op);
  bool isWhole = llvm::all_of(
      block, [](int64_t size) { return size == ScaledType::kWhole; });
  if (!group || !isWhole)
    return AmaxOp::create(builder, loc, op.getSource(), block, propagateNaN);
  AllReduceAmaxOp &known = reduced[{op.getSource(), op->getBlock()}];
  if (known) {
    auto amax = known.getAmax().getDefiningOp<AmaxOp>();
    if (amax.getPropagateNan() == propagateNaN && amax.getBlock() == block)
      return known.getReduced().front();
  }
  Value amax =
      AmaxOp::create(builder, loc, op.getSource(), block, propagateNaN);
  known = AllReduceAmaxOp::create(builder, loc, amax, group,
                                  /*size=*/IntegerAttr());
  LDBG() << "amax of " << op.getSource().getType() << " is shared by " << group;
  return known.getReduced().front();
}

LogicalResult InferScalesPass::resolve(QuantizeOp op) {
  RecipeAttrInterface recipe = op.getRecipeAttr();
  bool hasState = recipe.roundsStochastically() && op.getSeed();
  if (recipe.isStateful() && !hasState)
    return op.emitOpError("expected a recipe without state, but got ")
           << recipe << ": its "
           << (recipe.roundsStochastically() ? "seeds" : "scales")
           << " come from a state, run fp8-allocate-state first";

  IRRewriter rewriter(op);
  Location loc = op.getLoc();
  ScaledType type = op.getResult().getType();
  ScaleRuleAttrInterface rule =
      recipe.getScaleRule(op.getSource().getType().getElementType());
  Value amax = measure(rewriter, op, type.getBlock());
  // The tensor's amax is that of its elements, and not of the blocks' amaxes:
  // one for all blocks of the same tensor, which the product that computes it
  // can measure. Those of blocks are known to who quantizes them.
  Value tensorAmax;
  if (type.getHasTensorScale())
    tensorAmax = measure(
        rewriter, op, SmallVector<int64_t>(type.getRank(), ScaledType::kWhole));
  auto scales =
      ComputeScaleOp::create(rewriter, loc, amax, tensorAmax,
                             type.getElementType(), type.getScaleType(), rule);
  DictionaryAttr attributes = op->getDiscardableAttrDictionary();
  auto quantize = rewriter.replaceOpWithNewOp<QuantizeOp>(
      op, type, op.getSource(), scales.getScale(), scales.getScaleInv(),
      scales.getTensorScaleInv(), op.getSeed(),
      /*recipe=*/RecipeAttrInterface());
  quantize->setDiscardableAttrs(attributes);
  LDBG() << "scale of " << type << " by " << recipe << ", for amaxes of "
         << amax.getType() << " with " << rule;
  ++numResolved;
  return success();
}

void InferScalesPass::runOnOperation() {
  reduced.clear();
  SmallVector<QuantizeOp> unresolved;
  getOperation()->walk([&](QuantizeOp op) {
    if (op.isUnresolved())
      unresolved.push_back(op);
  });
  for (QuantizeOp op : unresolved)
    if (failed(resolve(op)))
      return signalPassFailure();
}
