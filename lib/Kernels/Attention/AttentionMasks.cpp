//===- AttentionMasks.cpp - Scores, from a softmax to a product -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionMatcher.h"
#include "AttentionWindow.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Element::Kind;

linalg::LinalgOp AttentionMatcher::getProduct(Element *element) {
  if (element->kind != Kind::Tensor)
    return {};
  auto op = element->tensor.getDefiningOp<linalg::LinalgOp>();
  return op && isContraction(op) ? op : linalg::LinalgOp();
}

bool AttentionMatcher::hasProduct(Element *element) {
  element = trace->skipCasts(element);
  if (getProduct(element))
    return true;
  auto [known, isNew] = products.try_emplace(element, false);
  if (!isNew)
    return known->second;
  bool has = element->kind != Kind::Reduction &&
             llvm::any_of(element->operands, [&](Element *operand) {
               return hasProduct(operand);
             });
  return products[element] = has;
}

bool AttentionMatcher::isRoundedToFewBits(Element *element) {
  for (;;) {
    Element *definition = trace->look(element);
    if (!isOp<arith::ExtFOp, arith::TruncFOp>(definition))
      return false;
    if (isNarrow(definition->getType()))
      return true;
    element = definition->operands[0];
  }
}

LogicalResult AttentionMatcher::matchCondition(Element *condition,
                                               bool isVisible,
                                               Element *hidden) {
  if (pattern.cap)
    return fail("expected a mask of scores with their cap, but got one before");
  if (isRoundedToFewBits(hidden))
    return fail("expected hidden scores of 16 bits or more, but got some that "
                "are rounded to fewer");
  std::optional<double> score = trace->getNumber(hidden);
  // As the softmax sees it: factors behind it are known by now. What is added
  // may be far below what 32 bits hold once it is.
  if (score)
    *score *= pattern.scale;
  if (!score || !(*score <= -3e4))
    return fail("expected hidden scores of -30000 or less, but got others");
  if (std::isfinite(*score))
    hiddenScore = *score;
  WindowMatcher window(*trace, pattern.keys);
  if (succeeded(window.match(condition, isVisible))) {
    if (window.queries) {
      if (maskedQueries && *maskedQueries != *window.queries)
        return fail("expected one mask, but got masks of different queries");
      maskedQueries = window.queries;
    }
    if (window.first)
      pattern.first =
          std::max(*window.first, pattern.first.value_or(INT64_MIN));
    if (window.last)
      pattern.last = std::min(*window.last, pattern.last.value_or(INT64_MAX));
    return success();
  }
  Element *mask = trace->skipCasts(condition);
  if (mask->kind != Kind::Tensor || !mask->getType().isInteger(1) || !isVisible)
    return fail(
        "expected keys hidden by a window, or by a tensor of i1 that is "
        "0 there, but got something else");
  if (std::isfinite(*score))
    return fail("expected a mask to hide by -inf, but got {0}: a query that "
                "sees no key would have the mean of all values",
                *score);
  if (pattern.mask)
    return fail("expected one mask, but got several");
  pattern.mask = {mask->tensor, mask->place};
  return success();
}

/// The element of a tensor that has the numbers of a mask, or null.
static Element *getStored(Element *mask) {
  while (isOp<arith::ExtFOp>(mask))
    mask = mask->operands[0];
  Type type = mask->kind == Kind::Tensor ? mask->getType() : Type();
  return isa_and_nonnull<FloatType>(type) && !isNarrow(type) && !type.isF64()
             ? mask
             : nullptr;
}

bool AttentionMatcher::matchHiding(Element *mask) {
  if (!isOp<arith::SelectOp>(mask))
    return false;
  for (bool isVisible : {true, false}) {
    Element *hidden = mask->operands[isVisible ? 2 : 1];
    if (trace->getNumber(mask->operands[isVisible ? 1 : 2]) != 0.0 ||
        !trace->getNumber(hidden))
      continue;
    auto before = std::tuple{pattern, hiddenScore, maskedQueries};
    if (succeeded(matchCondition(mask->operands[0], isVisible, hidden)))
      return true;
    std::tie(pattern, hiddenScore, maskedQueries) = std::move(before);
  }
  return false;
}

LogicalResult AttentionMatcher::matchMask(Element *mask) {
  // What a program computes of numbers of queries and keys, and no window
  // says, is a tensor of it all the same.
  Element *stored = getStored(mask);
  // What hides -30000 is another number in 8 bits, or none.
  bool isRounded = isRoundedToFewBits(mask);
  if (!stored && isRounded)
    return fail("expected a mask of 16 bits or more, but got one that is "
                "rounded to fewer");
  mask = isRounded ? stored : trace->skipCasts(mask);
  if (!isRounded && matchHiding(mask))
    return success();
  if (mask->kind != Kind::Tensor && !stored) {
    if (!reason.empty())
      return failure();
    return fail("expected a mask that is a tensor, but got one computed by {0}",
                mask->op ? mask->op->getName().getStringRef() : "a constant");
  }
  if (mask->kind != Kind::Tensor)
    mask = stored;
  reason.clear();
  if (pattern.mask)
    return fail("expected one mask, but got several");
  if (pattern.cap)
    return fail("expected a mask of scores with their cap, but got one before");
  if (pattern.scale != 1)
    return fail(
        "expected a mask to be added to scaled scores, but got a factor "
        "of {0} after it",
        pattern.scale);
  pattern.mask = {mask->tensor, mask->place};
  return success();
}

LogicalResult AttentionMatcher::matchCap() {
  if (pattern.cap)
    return fail("expected one cap of scores, but got several");
  if (!(pattern.scale > 0) || !std::isfinite(static_cast<float>(pattern.scale)))
    return fail("expected a positive cap of scores, but got {0}",
                pattern.scale);
  // Factors before it are of the score as a part of the cap.
  pattern.cap = pattern.scale;
  return success();
}

LogicalResult AttentionMatcher::matchStep(Element *step, Element *&next) {
  if (isOp<arith::MulFOp>(step))
    for (unsigned i : {0, 1})
      if (std::optional<double> factor = trace->getNumber(step->operands[i])) {
        pattern.scale *= *factor;
        next = step->operands[1 - i];
        return success();
      }
  if (isOp<arith::DivFOp>(step))
    if (std::optional<double> divisor = trace->getNumber(step->operands[1])) {
      pattern.scale /= *divisor;
      next = step->operands[0];
      return success();
    }
  if (isOp<arith::AddFOp>(step)) {
    bool isFirst = hasProduct(step->operands[0]);
    if (isFirst != hasProduct(step->operands[1])) {
      next = step->operands[!isFirst];
      return matchMask(step->operands[isFirst]);
    }
  }
  if (isOp<arith::SelectOp>(step)) {
    bool isFirst = hasProduct(step->operands[1]);
    if (isFirst != hasProduct(step->operands[2])) {
      next = step->operands[isFirst ? 1 : 2];
      return matchCondition(step->operands[0], isFirst,
                            step->operands[isFirst ? 2 : 1]);
    }
  }
  if (isOp<math::TanhOp>(step)) {
    next = step->operands[0];
    return matchCap();
  }
  return fail("expected scores that are scaled and masked, but got {0} of them",
              step->op ? step->op->getName().getStringRef() : "a constant");
}

LogicalResult AttentionMatcher::matchScores(Element *scores) {
  for (Element *step = trace->skipCasts(scores);;
       step = trace->skipCasts(scores)) {
    if (isRoundedToFewBits(scores))
      return fail("expected scores of 16 bits or more, but got some that are "
                  "rounded to fewer");
    if (linalg::LinalgOp product = getProduct(step)) {
      if (failed(checkMask(product)))
        return failure();
      return matchOperands(step);
    }
    if (step->kind == Kind::Tensor || failed(matchStep(step, scores)))
      return failure();
  }
}

LogicalResult AttentionMatcher::checkMask(linalg::LinalgOp product) {
  if (!pattern.mask)
    return success();
  SmallVector<Value> left{pattern.mask->tensor};
  llvm::DenseSet<Operation *> seen;
  while (!left.empty()) {
    Operation *op = left.pop_back_val().getDefiningOp();
    if (op == product)
      return fail("expected a mask that is not made of scores, but got one "
                  "that is");
    // What comes before the product has nothing of it.
    if (op && op->getBlock() == product->getBlock() &&
        product->isBeforeInBlock(op) && seen.insert(op).second)
      llvm::append_range(left, op->getOperands());
  }
  return success();
}

/// A finite score hides nothing from a query that sees no key.
LogicalResult AttentionMatcher::checkWindow() {
  if (!std::isfinite(hiddenScore))
    return success();
  int64_t queries = digits.getExtent(pattern.queries);
  int64_t keys = digits.getExtent(pattern.keys);
  bool seesFirst = !pattern.last || *pattern.last >= 0;
  bool seesLast = !pattern.first || *pattern.first < -(INT64_C(1) << 40);
  if (!seesLast && !ShapedType::isDynamic(queries) &&
      !ShapedType::isDynamic(keys))
    seesLast = queries - 1 + *pattern.first <= keys - 1;
  if (seesFirst && seesLast)
    return success();
  return fail("expected a mask to hide by -inf, but got {0}: a query that sees "
              "no key would have the mean of all values",
              hiddenScore);
}
