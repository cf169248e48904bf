//===- RaiseAttention.cpp - Products and a softmax to attention -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "AttentionPattern.h"
#include "DigitReshape.h"
#include "fp8/IR/AttentionRecipe.h"
#include "fp8/IR/ExactMath.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Iterators.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "fp8-raise-attention"

namespace mlir::fp8 {
#define GEN_PASS_DEF_RAISEATTENTIONPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
class Raiser {
public:
  Raiser(RewriterBase &rewriter, DigitTable &digits, AttentionPattern pattern,
         const std::optional<KernelTarget> &target, std::string &reason)
      : b(rewriter), digits(digits), pattern(std::move(pattern)),
        target(target), reason(reason) {}

  LogicalResult raise();

private:
  template <typename... Parts>
  LogicalResult fail(const Parts &...parts) {
    reason = llvm::formatv(parts...).str();
    return failure();
  }

  /// Whether nothing but the second product needs the scores.
  LogicalResult checkTypes();
  LogicalResult checkUses();
  /// Follows the result through what moves it or rounds it.
  void followResult();
  LogicalResult checkRounding();
  /// The window of the operation; fails where it has none.
  LogicalResult findWindow();
  void chooseLayout();
  /// Q, K, V or the result, in the order of the layout.
  Place getShape(const Digits &sequence, const Digits &head,
                 const Digits &columns) const;
  LogicalResult buildMask();
  AttentionOp build();

  RewriterBase &b;
  DigitTable &digits;
  AttentionPattern pattern;
  const std::optional<KernelTarget> &target;
  std::string &reason;
  /// What is replaced: the product's result, or that moved and rounded.
  PlacedTensor result;
  AttentionLayout layout = AttentionLayout::BSHD;
  DenseI64ArrayAttr window;
  bool isBottomRight = false;
  Value mask;
};
} // namespace

LogicalResult Raiser::checkUses() {
  SmallVector<Operation *> worklist{pattern.scores};
  llvm::SmallPtrSet<Operation *, 16> ops(pattern.ops.begin(),
                                         pattern.ops.end());
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Operation *user : op->getUsers()) {
      if (user == pattern.product || isa<tensor::DimOp>(user))
        continue;
      if (!ops.contains(user))
        return fail("its scores are needed by {0} too",
                    user->getName().getStringRef());
      if (seen.insert(user).second)
        worklist.push_back(user);
    }
  }
  return success();
}

/// Whether `op` yields `tensor`, rounded.
static bool isRounding(Operation *op, Value tensor) {
  if (isa<arith::TruncFOp>(op))
    return true;
  auto generic = dyn_cast<linalg::LinalgOp>(op);
  if (!generic || generic->getNumResults() != 1 ||
      generic.getNumDpsInputs() != 1 ||
      generic.getDpsInputOperand(0)->get() != tensor ||
      generic.getNumReductionLoops() != 0 ||
      !llvm::all_of(generic.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return false;
  Block *body = generic.getBlock();
  auto round =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::TruncFOp>();
  return round && round.getIn() == body->getArgument(0);
}

/// `tensor` after `op`, if that moves or rounds it.
static std::optional<PlacedTensor>
follow(DigitTable &digits, const PlacedTensor &tensor, Operation *op) {
  Place place;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    for (auto [index, group] :
         llvm::zip_equal(tensor.place, expand.getReassociationIndices())) {
      FailureOr<Place> parts = digits.split(
          index,
          expand.getResultType().getShape().slice(group.front(), group.size()));
      if (failed(parts))
        return std::nullopt;
      llvm::append_range(place, *parts);
    }
    return PlacedTensor{expand.getResult(), place};
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    for (const ReassociationIndices &group :
         collapse.getReassociationIndices()) {
      Digits &index = place.emplace_back();
      for (int64_t dim : group)
        llvm::append_range(index, tensor.place[dim]);
    }
    return PlacedTensor{collapse.getResult(), place};
  }
  if (op->getNumResults() == 1 && isRounding(op, tensor.tensor) &&
      getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() >= 16)
    return PlacedTensor{op->getResult(0), tensor.place};
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || linalgOp->getNumResults() != 1 ||
      linalgOp.getNumDpsInputs() != 1 || linalgOp.getNumReductionLoops() != 0 ||
      linalgOp.getBlock()->getTerminator()->getOperand(0) !=
          linalgOp.getBlock()->getArgument(0))
    return std::nullopt;
  SmallVector<AffineMap> maps = linalgOp.getIndexingMapsArray();
  if (linalgOp.getDpsInputOperand(0)->get() != tensor.tensor ||
      !maps[0].isPermutation() || !maps[1].isPermutation())
    return std::nullopt;
  Place loops(linalgOp.getNumLoops());
  for (auto [expr, index] : llvm::zip_equal(maps[0].getResults(), tensor.place))
    loops[cast<AffineDimExpr>(expr).getPosition()] = index;
  for (AffineExpr expr : maps[1].getResults())
    place.push_back(loops[cast<AffineDimExpr>(expr).getPosition()]);
  return PlacedTensor{linalgOp->getResult(0), place};
}

void Raiser::followResult() {
  linalg::LinalgOp product = pattern.product;
  result.tensor = product->getResult(0);
  AffineMap map = product.getIndexingMapsArray().back();
  SmallVector<int64_t> ranges = product.getStaticLoopRanges();
  for (AffineExpr expr : map.getResults()) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    result.place.push_back(digits.getLoop(product, loop, ranges[loop]));
  }
  while (result.tensor.hasOneUse()) {
    std::optional<PlacedTensor> next =
        follow(digits, result, *result.tensor.user_begin());
    if (!next)
      return;
    result = *next;
    result.place = digits.resolve(result.place);
  }
}

LogicalResult Raiser::checkRounding() {
  Type of = getElementTypeOrSelf(pattern.v.tensor);
  Type to = getElementTypeOrSelf(result.tensor);
  if (of.isF32() || pattern.isRounded || to.getIntOrFloatBitWidth() <= 16)
    return success();
  return fail("expected a result that is rounded to 16 bits where shares are "
              "not, but got {0} of values of {1}",
              to, of);
}

LogicalResult Raiser::findWindow() {
  if (!pattern.first && !pattern.last)
    return success();
  // As it is stored.
  const int64_t none = -1;
  std::optional<int64_t> left, right = pattern.last;
  if (pattern.first)
    left = -*pattern.first;
  auto isNegative = [](std::optional<int64_t> side) {
    return side && *side < 0;
  };
  if (isNegative(left) || isNegative(right)) {
    int64_t queries = digits.getExtent(pattern.queries);
    int64_t keys = digits.getExtent(pattern.keys);
    if (ShapedType::isDynamic(queries) || ShapedType::isDynamic(keys))
      return fail("expected a window with a query's own key");
    isBottomRight = true;
    if (left)
      *left += keys - queries;
    if (right)
      *right -= keys - queries;
    if (isNegative(left) || isNegative(right))
      return fail("expected a window with a query's own key");
  }
  window = b.getDenseI64ArrayAttr({left.value_or(none), right.value_or(none)});
  return success();
}

Place Raiser::getShape(const Digits &sequence, const Digits &head,
                       const Digits &columns) const {
  if (layout == AttentionLayout::BSHD)
    return {pattern.batch, sequence, head, columns};
  return {pattern.batch, head, sequence, columns};
}

void Raiser::chooseLayout() {
  unsigned least = ~0u;
  AttentionLayout best = layout;
  for (AttentionLayout each : {AttentionLayout::BSHD, AttentionLayout::BHSD}) {
    layout = each;
    unsigned copies = 0;
    for (const auto &[tensor, shape] :
         {std::pair{pattern.q,
                    getShape(pattern.queries, pattern.heads, pattern.columns)},
          std::pair{pattern.k,
                    getShape(pattern.keys, pattern.headsOfK, pattern.columns)},
          std::pair{pattern.v, getShape(pattern.keys, pattern.headsOfK,
                                        pattern.columnsOfV)},
          std::pair{result, getShape(pattern.queries, pattern.heads,
                                     pattern.columnsOfV)}})
      copies += !haveSameOrder(digits, tensor.place, shape);
    if (copies < least) {
      least = copies;
      best = each;
    }
  }
  layout = best;
}

/// `tensor` as one of four dimensions, of 1 where it has none of the digits.
LogicalResult Raiser::buildMask() {
  if (!pattern.mask)
    return success();
  Place shape{pattern.batch, pattern.heads, pattern.queries, pattern.keys};
  Digits has;
  for (const Digits &index : digits.resolve(pattern.mask->place))
    llvm::append_range(has, index);
  size_t found = 0;
  for (Digits &index : shape) {
    index = digits.resolve(index);
    bool isHere = !index.empty() && llvm::is_contained(has, index.front());
    for (unsigned digit : index)
      if (llvm::is_contained(has, digit) != isHere)
        return fail("expected a mask of all heads or of one, but got {0}",
                    pattern.mask->tensor.getType());
    if (isHere)
      found += index.size();
    else
      index.clear();
  }
  if (found != has.size())
    return fail("expected a mask of queries and keys, but got {0}",
                pattern.mask->tensor.getType());
  mask = reshapeDigits(b, pattern.product->getLoc(), digits,
                       pattern.mask->tensor, pattern.mask->place, shape);
  if (!mask)
    return fail("expected a mask of queries or keys, but got {0}",
                pattern.mask->tensor.getType());
  return success();
}

AttentionOp Raiser::build() {
  Location loc = pattern.product->getLoc();
  auto reshape = [&](const PlacedTensor &tensor, const Place &shape) {
    return reshapeDigits(b, loc, digits, tensor.tensor, tensor.place, shape);
  };
  Value q = reshape(pattern.q,
                    getShape(pattern.queries, pattern.heads, pattern.columns));
  Value k = reshape(pattern.k,
                    getShape(pattern.keys, pattern.headsOfK, pattern.columns));
  Value v = reshape(
      pattern.v, getShape(pattern.keys, pattern.headsOfK, pattern.columnsOfV));
  if (!q || !k || !v)
    return {};
  SmallVector<int64_t> shape(cast<RankedTensorType>(q.getType()).getShape());
  shape.back() = cast<RankedTensorType>(v.getType()).getShape().back();
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(result.tensor));
  return AttentionOp::create(
      b, loc, type, /*lse=*/Type(), q, k, v, mask, /*key_lengths=*/Value(),
      /*page_table=*/Value(), /*key_starts=*/Value(), /*key_ranges=*/Value(),
      /*sinks=*/Value(), /*dropout=*/Value(),
      b.getF32FloatAttr(static_cast<float>(pattern.scale)),
      /*rate=*/FloatAttr(),
      pattern.cap ? b.getF32FloatAttr(static_cast<float>(*pattern.cap))
                  : FloatAttr(),
      window, isBottomRight ? b.getUnitAttr() : UnitAttr(),
      AttentionLayoutAttr::get(b.getContext(), layout),
      /*accumulate=*/AccumulateAttr(), /*p_scale=*/FloatAttr());
}

static bool isAttended(Type type) {
  return type.isF32() || type.isBF16() || type.isF16();
}

LogicalResult Raiser::checkTypes() {
  Type type = getElementTypeOrSelf(pattern.q.tensor);
  if (type != getElementTypeOrSelf(pattern.k.tensor) ||
      type != getElementTypeOrSelf(pattern.v.tensor))
    return fail("expected Q, K and V of one type, but got {0}, {1} and {2}",
                type, getElementTypeOrSelf(pattern.k.tensor),
                getElementTypeOrSelf(pattern.v.tensor));
  if (!isAttended(type))
    return fail("expected Q, K and V of f32, bf16 or f16, but got {0}", type);
  if (!pattern.mask)
    return success();
  Type ofMask = getElementTypeOrSelf(pattern.mask->tensor);
  if (!isAttended(ofMask) && !ofMask.isInteger(1))
    return fail("expected a mask of i1, f32, bf16 or f16, but got {0}", ofMask);
  return success();
}

LogicalResult Raiser::raise() {
  for (Operation *op :
       {pattern.scores.getOperation(), pattern.product.getOperation()})
    if (isInvariant(op) || hasExactMath(op))
      return fail("it is {0}, and the sums and functions of the kernel are its "
                  "own",
                  isInvariant(op) ? "invariant" : "exact");
  for (Operation *op :
       {pattern.scores.getOperation(), pattern.product.getOperation()})
    if (auto recipe = op->getAttrOfType<RecipeAttrInterface>(kRecipeAttrName);
        recipe && !recipe.isHighPrecision())
      return fail("its products have a recipe of their own");
  if (!(pattern.scale > 0) || !std::isfinite(static_cast<float>(pattern.scale)))
    return fail("expected a positive factor of scores, but got {0}",
                pattern.scale);
  if (failed(checkTypes()) || failed(checkUses()))
    return failure();
  followResult();
  if (!isAttended(getElementTypeOrSelf(result.tensor)))
    return fail("expected a result of f32, bf16 or f16, but got {0}",
                getElementTypeOrSelf(result.tensor));
  if (failed(checkRounding()) || failed(findWindow()))
    return failure();
  chooseLayout();
  b.setInsertionPointAfterValue(result.tensor);
  if (failed(buildMask()))
    return failure();
  AttentionOp op = build();
  if (!op)
    return fail("expected extents that are known in part, but got {0}",
                pattern.q.tensor.getType());
  for (StringRef name :
       {StringRef(kNameAttrName), StringRef(kAttentionRecipeAttrName)})
    if (Attribute attribute = pattern.product->getAttr(name))
      op->setAttr(name, attribute);
  if (target) {
    auto kernel = cast<KernelOpInterface>(op.getOperation());
    FailureOr<std::unique_ptr<KernelSpec>> spec = kernel.getKernelSpec(reason);
    // What was built for it has no use and goes.
    if (failed(spec) || !hasKernel(**spec, *target, reason)) {
      b.eraseOp(op);
      return failure();
    }
  }
  Place shape = getShape(pattern.queries, pattern.heads, pattern.columnsOfV);
  Value moved = reshapeDigits(b, op.getLoc(), digits, op.getOutput(), shape,
                              result.place, result.tensor.getType());
  if (!moved) {
    b.eraseOp(op);
    return fail("expected extents that are known in part, but got {0}",
                result.tensor.getType());
  }
  b.replaceAllUsesWith(result.tensor, moved);
  return success();
}

/// Whether an attribute says how attention of `op` is quantized.
static bool hasAttentionRecipe(Operation *op) {
  for (; op; op = op->getParentOp())
    if (op->hasAttr(kAttentionRecipeAttrName))
      return true;
  return false;
}

namespace {
struct RaiseAttentionPass
    : fp8::impl::RaiseAttentionPassBase<RaiseAttentionPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isContraction(op) && op.hasPureTensorSemantics() &&
          (!onlyWithRecipe || hasAttentionRecipe(op)))
        ops.push_back(op);
    });
    if (ops.empty())
      return markAllAnalysesPreserved();
    std::optional<KernelTarget> target;
    if (!chip.empty()) {
      FailureOr<KernelTarget> found = lookupChip(getOperation(), chip);
      if (failed(found))
        return signalPassFailure();
      target = *found;
    }
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      raise(rewriter, op, target);
    eraseDead();
  }

private:
  void raise(RewriterBase &rewriter, linalg::LinalgOp op,
             const std::optional<KernelTarget> &target) {
    std::string reason;
    DigitTable digits;
    FailureOr<AttentionPattern> pattern = matchAttention(digits, op, reason);
    if (succeeded(pattern) &&
        succeeded(Raiser(rewriter, digits, *pattern, target, reason).raise())) {
      LDBG() << "raised " << op->getName() << " at " << op.getLoc();
      ++numRaised;
      return;
    }
    LDBG() << "left " << op->getName() << ": " << reason;
    if (!reason.empty())
      op->emitRemark() << "attention stays two products and a softmax: "
                       << reason;
  }

  /// What only the softmax needed, so that later passes do not see it.
  void eraseDead() {
    getOperation().walk<WalkOrder::PostOrder, ReverseIterator>(
        [](Operation *op) {
          if (isOpTriviallyDead(op))
            op->erase();
        });
  }
};
} // namespace
