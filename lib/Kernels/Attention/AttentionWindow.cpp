//===- AttentionWindow.cpp - Which keys a condition shows -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionWindow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

/// Whether numbers up to `most`, and as many below 0, are some of a type.
static bool hasRoom(Type type, int64_t most) {
  auto integer = dyn_cast<IntegerType>(type);
  // Programs count with 64 bits what has no more elements.
  return !integer || integer.getWidth() >= 64 ||
         (integer.getWidth() > 1 && most < int64_t(1)
                                               << (integer.getWidth() - 1));
}

std::optional<WindowMatcher::Sum> WindowMatcher::getIndex(Element *element) {
  // No GPU has room for more, of numbers that are known when a program runs.
  constexpr int64_t mostPositions = int64_t(1) << 30;
  int64_t extent = trace.getDigits().getExtent(element->index);
  Sum sum;
  sum.most = (ShapedType::isDynamic(extent) ? mostPositions : extent) - 1;
  if (llvm::equal(element->index, keys)) {
    sum.ofKey = 1;
    return sum;
  }
  if (queries && *queries != element->index)
    return std::nullopt;
  queries = element->index;
  sum.ofQuery = 1;
  return sum;
}

std::optional<WindowMatcher::Sum> WindowMatcher::getConverted(Element *element,
                                                              unsigned depth) {
  std::optional<Sum> sum = getSum(element->operands[0], depth);
  // Without a sign a number below 0 is another one.
  bool hasSign =
      !isa<arith::ExtUIOp, arith::IndexCastUIOp>(element->op) ||
      (sum && sum->ofKey >= 0 && sum->ofQuery >= 0 && sum->number >= 0);
  return sum && hasSign && hasRoom(element->getType(), sum->most)
             ? sum
             : std::nullopt;
}

std::optional<WindowMatcher::Sum> WindowMatcher::getSum(Element *element,
                                                        unsigned depth) {
  // Longer sums than any mask has, of parts that may be shared.
  if (depth > 16)
    return std::nullopt;
  element = trace.look(element);
  if (element->kind == Element::Kind::Index)
    return getIndex(element);
  if (element->kind == Element::Kind::Constant) {
    auto number = dyn_cast<IntegerAttr>(element->constant);
    if (!number || number.getValue().getSignificantBits() > 40)
      return std::nullopt;
    int64_t value = number.getValue().getSExtValue();
    return Sum{0, 0, value, std::abs(value)};
  }
  if (element->kind != Element::Kind::Operation)
    return std::nullopt;
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp,
          arith::IndexCastUIOp>(element->op))
    return getConverted(element, depth + 1);
  if (!isa<arith::AddIOp, arith::SubIOp>(element->op))
    return std::nullopt;
  std::optional<Sum> lhs = getSum(element->operands[0], depth + 1);
  std::optional<Sum> rhs = getSum(element->operands[1], depth + 1);
  if (!lhs || !rhs || !hasRoom(element->getType(), lhs->most + rhs->most))
    return std::nullopt;
  int64_t sign = isa<arith::SubIOp>(element->op) ? -1 : 1;
  return Sum{lhs->ofKey + sign * rhs->ofKey, lhs->ofQuery + sign * rhs->ofQuery,
             lhs->number + sign * rhs->number, lhs->most + rhs->most};
}

/// Whether the least, or most, that a number may be decides what `predicate`
/// says of it and 0.
static bool isAlways(arith::CmpIPredicate predicate,
                     std::optional<int64_t> least,
                     std::optional<int64_t> most) {
  switch (predicate) {
  case arith::CmpIPredicate::sge:
    return least && *least >= 0;
  case arith::CmpIPredicate::sgt:
    return least && *least > 0;
  case arith::CmpIPredicate::sle:
    return most && *most <= 0;
  case arith::CmpIPredicate::slt:
    return most && *most < 0;
  default:
    return false;
  }
}

bool WindowMatcher::isAlways(const Sum &sum,
                             arith::CmpIPredicate predicate) const {
  std::optional<int64_t> least = sum.number, most = sum.number;
  auto add = [&](int64_t factor, ArrayRef<unsigned> index) {
    if (factor == 0)
      return;
    int64_t extent = trace.getDigits().getExtent(index);
    std::optional<int64_t> &far = factor > 0 ? most : least;
    if (ShapedType::isDynamic(extent) || std::abs(factor) > 16)
      far.reset();
    else if (far)
      *far += factor * (extent - 1);
  };
  add(sum.ofKey, keys);
  if (queries)
    add(sum.ofQuery, *queries);
  return ::isAlways(predicate, least, most);
}

LogicalResult WindowMatcher::matchComparison(Element *comparison,
                                             bool isVisible) {
  std::optional<Digits> before = queries;
  std::optional<Sum> lhs = getSum(comparison->operands[0]);
  std::optional<Sum> rhs = getSum(comparison->operands[1]);
  if (!lhs || !rhs)
    return failure();
  Sum sum{lhs->ofKey - rhs->ofKey, lhs->ofQuery - rhs->ofQuery,
          lhs->number - rhs->number, lhs->most + rhs->most};
  auto predicate = cast<arith::CmpIOp>(comparison->op).getPredicate();
  if (!isVisible)
    predicate = arith::invertPredicate(predicate);
  // That a number is none below 0 is asked of masks that hide nothing.
  if (isAlways(sum, predicate)) {
    queries = std::move(before);
    return success();
  }
  // key - query + number, compared with 0.
  bool isTurned = sum.ofKey == -1 && sum.ofQuery == 1;
  if (isTurned)
    sum.number = -sum.number;
  else if (sum.ofKey != 1 || sum.ofQuery != -1)
    return failure();
  auto atMost = [&](int64_t limit) {
    last = std::min(limit, last.value_or(limit));
    return success();
  };
  auto atLeast = [&](int64_t limit) {
    first = std::max(limit, first.value_or(limit));
    return success();
  };
  int64_t zero = -sum.number;
  switch (predicate) {
  case arith::CmpIPredicate::sle:
    return isTurned ? atLeast(zero) : atMost(zero);
  case arith::CmpIPredicate::slt:
    return isTurned ? atLeast(zero + 1) : atMost(zero - 1);
  case arith::CmpIPredicate::sge:
    return isTurned ? atMost(zero) : atLeast(zero);
  case arith::CmpIPredicate::sgt:
    return isTurned ? atMost(zero - 1) : atLeast(zero + 1);
  default:
    return failure();
  }
}

LogicalResult WindowMatcher::matchChosen(Element *comparison, bool isVisible) {
  // Not what is rounded: -1e30 is -inf in f16, and no number of a choice is.
  auto getExact = [&](Element *element) {
    element = trace.look(element);
    while (element->kind == Element::Kind::Operation &&
           isa<arith::ExtFOp>(element->op))
      element = trace.look(element->operands[0]);
    return element;
  };
  auto getNumber = [&](Element *element) -> std::optional<double> {
    element = getExact(element);
    std::optional<double> number;
    if (element->kind == Element::Kind::Constant)
      number = trace.getNumber(element);
    return number && !std::isnan(*number) ? number : std::nullopt;
  };
  Element *choice = getExact(comparison->operands[0]);
  std::optional<double> number = getNumber(comparison->operands[1]);
  if (choice->kind != Element::Kind::Operation ||
      !isa<arith::SelectOp>(choice->op) || !number)
    return failure();
  auto predicate = cast<arith::CmpFOp>(comparison->op).getPredicate();
  bool isEqual = predicate == arith::CmpFPredicate::OEQ ||
                 predicate == arith::CmpFPredicate::UEQ;
  if (!isEqual && predicate != arith::CmpFPredicate::ONE &&
      predicate != arith::CmpFPredicate::UNE)
    return failure();
  std::optional<double> chosen = getNumber(choice->operands[1]);
  std::optional<double> other = getNumber(choice->operands[2]);
  if (!chosen || !other)
    return failure();
  bool isChosen = (*chosen == *number) == isEqual;
  if (isChosen == ((*other == *number) == isEqual))
    return success(isChosen == isVisible);
  return match(choice->operands[0], isChosen == isVisible);
}

LogicalResult WindowMatcher::match(Element *condition, bool isVisible) {
  // Conditions may share parts, so that there are far more paths than parts.
  if (++steps > 64)
    return failure();
  condition = trace.skipCasts(condition);
  if (std::optional<double> value = trace.getNumber(condition))
    return success((*value != 0) == isVisible);
  if (condition->kind != Element::Kind::Operation)
    return failure();
  if (isa<arith::CmpIOp>(condition->op))
    return matchComparison(condition, isVisible);
  if (isa<arith::CmpFOp>(condition->op))
    return matchChosen(condition, isVisible);
  if (isa<arith::XOrIOp>(condition->op)) {
    for (unsigned i : {0, 1})
      if (std::optional<double> value = trace.getNumber(condition->operands[i]))
        return match(condition->operands[1 - i], isVisible == (*value == 0));
    return failure();
  }
  // All have to show a key: that one of several hides it is the same.
  if ((isVisible && isa<arith::AndIOp>(condition->op)) ||
      (!isVisible && isa<arith::OrIOp>(condition->op)))
    return success(succeeded(match(condition->operands[0], isVisible)) &&
                   succeeded(match(condition->operands[1], isVisible)));
  // A condition that is a choice of conditions.
  if (isa<arith::SelectOp>(condition->op)) {
    std::optional<double> chosen = trace.getNumber(condition->operands[1]);
    std::optional<double> other = trace.getNumber(condition->operands[2]);
    if (chosen && other && (*chosen != 0) != (*other != 0))
      return match(condition->operands[0], (*chosen != 0) == isVisible);
    if (isVisible && other && *other == 0)
      return success(succeeded(match(condition->operands[0], true)) &&
                     succeeded(match(condition->operands[1], true)));
  }
  return failure();
}
