//===- AttentionPattern.cpp - Attention as programs spell it --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionPattern.h"
#include "AttentionWindow.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Element::Kind;

namespace {
class Matcher {
public:
  Matcher(DigitTable &digits, linalg::LinalgOp product, std::string &reason)
      : digits(digits), reason(reason) {
    pattern.product = product;
  }

  FailureOr<AttentionPattern> match();

private:
  template <typename... Parts>
  LogicalResult fail(const Parts &...parts) {
    reason = llvm::formatv(parts...).str();
    return failure();
  }

  /// Indices of all loops of `op`, those of its result as given.
  Place getLoops(linalg::LinalgOp op, const Place &result);
  Element *getOperand(linalg::LinalgOp op, unsigned operand,
                      const Place &loops);
  /// `element` before a recipe quantized it, else null.
  Element *skipQuantize(Element *element);
  /// The scores of which `shares` is the softmax; null if it is none.
  Element *matchSoftmax(Element *shares);
  Element *skipHiddenRows(Element *element);
  bool isReduction(Element *element, Element *of, bool isMaximum);
  /// Follows scores to the first product.
  LogicalResult matchScores(Element *scores);
  /// One step of that, whose operand is `next`.
  LogicalResult matchStep(Element *step, Element *&next);
  LogicalResult matchMask(Element *mask);
  /// `chosen` where `condition` holds for what `isVisible` says, else hidden.
  LogicalResult matchCondition(Element *condition, bool isVisible,
                               Element *hidden);
  bool hasProduct(Element *element);
  /// Whether conversions that `skipCasts` skips go below 16 bits.
  bool isRoundedToFewBits(Element *element);
  /// The first product, or null.
  linalg::LinalgOp getProduct(Element *element);
  LogicalResult matchOperands(Element *scores);
  /// Q, K or V, before conversions and factors.
  PlacedTensor matchOperand(Element *element);
  LogicalResult sortDigits();
  LogicalResult checkWindow();

  DigitTable &digits;
  std::string &reason;
  std::optional<ElementTrace> trace;
  AttentionPattern pattern;
  /// The least that hidden scores may be taken for.
  double hiddenScore = -std::numeric_limits<double>::infinity();
  /// What is compared with -inf where rows that are hidden are zeros.
  Element *hiddenOf = nullptr;
  /// What `hasProduct` has said.
  llvm::DenseMap<Element *, bool> products;
  /// Digits of the queries that the mask tells apart.
  std::optional<Digits> maskedQueries;
};
} // namespace

Place Matcher::getLoops(linalg::LinalgOp op, const Place &result) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  Place loops(op.getNumLoops());
  AffineMap map = op.getIndexingMapsArray().back();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction || result.empty())
      loops[loop] = digits.getLoop(op, loop, ranges[loop]);
  for (auto [expr, index] : llvm::zip(map.getResults(), result))
    loops[cast<AffineDimExpr>(expr).getPosition()] = index;
  return loops;
}

Element *Matcher::getOperand(linalg::LinalgOp op, unsigned operand,
                             const Place &loops) {
  Place place;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInputOperand(operand));
  for (AffineExpr expr : map.getResults())
    place.push_back(loops[cast<AffineDimExpr>(expr).getPosition()]);
  return trace->get(op.getDpsInputOperand(operand)->get(), std::move(place));
}

Element *Matcher::skipQuantize(Element *element) {
  auto dequantize = element->tensor.getDefiningOp<DequantizeOp>();
  if (!dequantize)
    return nullptr;
  auto quantize = dequantize.getOperand().getDefiningOp<QuantizeOp>();
  return quantize ? trace->get(quantize.getSource(), element->place) : nullptr;
}

//===----------------------------------------------------------------------===//
// The softmax
//===----------------------------------------------------------------------===//

static bool isOperation(Element *element) {
  return element->kind == Kind::Operation;
}

template <typename... OpTys>
static bool isOp(Element *element) {
  return isOperation(element) && isa<OpTys...>(element->op);
}

/// PyTorch has zeros where all scores are -inf, as we have.
Element *Matcher::skipHiddenRows(Element *element) {
  element = trace->skipCasts(element);
  if (!isOp<arith::SelectOp>(element) ||
      trace->getNumber(element->operands[1]) != 0.0)
    return element;
  Element *all = trace->skipCasts(element->operands[0]);
  if (all->kind != Kind::Reduction || !isa<arith::AndIOp>(all->op))
    return element;
  Element *isHidden = trace->skipCasts(all->operands[0]);
  if (!isOp<arith::CmpFOp>(isHidden) ||
      cast<arith::CmpFOp>(isHidden->op).getPredicate() !=
          arith::CmpFPredicate::OEQ ||
      trace->getNumber(isHidden->operands[1]) !=
          -std::numeric_limits<double>::infinity())
    return element;
  hiddenOf = isHidden->operands[0];
  return trace->skipCasts(element->operands[2]);
}

bool Matcher::isReduction(Element *element, Element *of, bool isMaximum) {
  element = trace->skipCasts(element);
  // A maximum that is told to be at least -inf.
  if (isMaximum && isOp<arith::MaximumFOp, arith::MaxNumFOp>(element))
    for (unsigned i : {0, 1})
      if (trace->getNumber(element->operands[i]) ==
          -std::numeric_limits<double>::infinity())
        return isReduction(element->operands[1 - i], of, isMaximum);
  if (element->kind != Kind::Reduction ||
      !trace->isSame(element->operands[0], of))
    return false;
  std::optional<double> start = trace->getNumber(element->operands[1]);
  if (isMaximum)
    return isa<arith::MaximumFOp, arith::MaxNumFOp>(element->op) && start &&
           *start <= -3e38;
  return isa<arith::AddFOp>(element->op) && start == 0.0;
}

/// Whether a type has fewer bits than what attention is computed in.
static bool isNarrow(Type type) {
  return type && type.isFloat() && type.getIntOrFloatBitWidth() < 16;
}

Element *Matcher::matchSoftmax(Element *shares) {
  // The narrowest type on the way says whether shares are rounded.
  for (Element *step = shares;;) {
    Element *definition = trace->look(step);
    if (!isOp<arith::ExtFOp, arith::TruncFOp>(definition))
      break;
    if (isNarrow(definition->getType()))
      return nullptr;
    pattern.isRounded |= isa<arith::TruncFOp>(definition->op);
    step = definition->operands[0];
  }
  Element *quotient = skipHiddenRows(shares);
  // Zeros that something else than the scores asks for are the program's own.
  auto areOf = [&](Element *scores) {
    return !hiddenOf || trace->isSame(hiddenOf, scores) ? scores : nullptr;
  };
  if (isOp<linalg::SoftmaxOp>(quotient))
    return areOf(quotient->operands[0]);
  if (!isOp<arith::DivFOp>(quotient))
    return nullptr;
  Element *power = trace->skipCasts(quotient->operands[0]);
  if (!isOp<math::ExpOp>(power) ||
      !isReduction(quotient->operands[1], power, /*isMaximum=*/false))
    return nullptr;
  Element *distance = trace->skipCasts(power->operands[0]);
  if (!isOp<arith::SubFOp>(distance) ||
      !isReduction(distance->operands[1], distance->operands[0],
                   /*isMaximum=*/true))
    return nullptr;
  return areOf(distance->operands[0]);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

linalg::LinalgOp Matcher::getProduct(Element *element) {
  if (element->kind != Kind::Tensor)
    return {};
  auto op = element->tensor.getDefiningOp<linalg::LinalgOp>();
  return op && isContraction(op) ? op : linalg::LinalgOp();
}

bool Matcher::hasProduct(Element *element) {
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

bool Matcher::isRoundedToFewBits(Element *element) {
  for (;;) {
    Element *definition = trace->look(element);
    if (!isOp<arith::ExtFOp, arith::TruncFOp>(definition))
      return false;
    if (isNarrow(definition->getType()))
      return true;
    element = definition->operands[0];
  }
}

LogicalResult Matcher::matchCondition(Element *condition, bool isVisible,
                                      Element *hidden) {
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

LogicalResult Matcher::matchMask(Element *mask) {
  mask = trace->skipCasts(mask);
  if (isOp<arith::SelectOp>(mask))
    for (bool isVisible : {true, false})
      if (trace->getNumber(mask->operands[isVisible ? 1 : 2]) == 0.0 &&
          trace->getNumber(mask->operands[isVisible ? 2 : 1]))
        return matchCondition(mask->operands[0], isVisible,
                              mask->operands[isVisible ? 2 : 1]);
  if (mask->kind != Kind::Tensor)
    return fail("expected a mask that is a tensor, but got one computed by {0}",
                mask->op ? mask->op->getName().getStringRef() : "a constant");
  if (pattern.mask)
    return fail("expected one mask, but got several");
  if (pattern.scale != 1)
    return fail(
        "expected a mask to be added to scaled scores, but got a factor "
        "of {0} after it",
        pattern.scale);
  pattern.mask = {mask->tensor, mask->place};
  return success();
}

LogicalResult Matcher::matchStep(Element *step, Element *&next) {
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
  return fail("expected scores that are scaled and masked, but got {0} of them",
              step->op ? step->op->getName().getStringRef() : "a constant");
}

LogicalResult Matcher::matchScores(Element *scores) {
  for (Element *step = trace->skipCasts(scores);;
       step = trace->skipCasts(scores)) {
    if (isRoundedToFewBits(scores))
      return fail("expected scores of 16 bits or more, but got some that are "
                  "rounded to fewer");
    if (getProduct(step))
      return matchOperands(step);
    if (step->kind == Kind::Tensor || failed(matchStep(step, scores)))
      return failure();
  }
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

PlacedTensor Matcher::matchOperand(Element *element) {
  double factor = 1;
  PlacedTensor best{element->tensor, element->place};
  for (Element *step = element;;) {
    // The last of 16 bits, or of what there is.
    if (step->kind == Kind::Tensor) {
      unsigned width = step->getType().getIntOrFloatBitWidth();
      if (step == element ||
          (width >= 16 &&
           width <=
               getElementTypeOrSelf(best.tensor).getIntOrFloatBitWidth())) {
        best = {step->tensor, step->place};
        pattern.scale *= factor;
        factor = 1;
      }
    }
    Element *definition = trace->look(step);
    if (isOp<arith::ExtFOp, arith::TruncFOp>(definition)) {
      if (isNarrow(definition->getType()) ||
          isNarrow(getElementTypeOrSelf(definition->op->getOperand(0))))
        return best;
      step = definition->operands[0];
      continue;
    }
    std::optional<double> number;
    unsigned other = 0;
    if (isOp<arith::MulFOp>(definition))
      for (unsigned i : {0, 1})
        if (!number && (number = trace->getNumber(definition->operands[i])))
          other = 1 - i;
    if (!number)
      return best;
    factor *= *number;
    step = definition->operands[other];
  }
}

LogicalResult Matcher::matchOperands(Element *scores) {
  linalg::LinalgOp op = pattern.scores = getProduct(scores);
  ContractionMismatch mismatch;
  if (failed(matchContraction(op, mismatch)))
    return fail("expected a product of matrices, but the first {0}",
                mismatch.reason);
  if (!isKnownZero(op.getDpsInitOperand(0)->get()))
    return fail("expected scores that start from zero, but got a sum onto "
                "others");
  Place loops = getLoops(op, scores->place);
  Element *sides[] = {getOperand(op, 0, loops), getOperand(op, 1, loops)};
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      llvm::append_range(pattern.columns, loops[loop]);
  // K is told by having the keys.
  auto hasKeys = [&](Element *side) {
    return llvm::any_of(pattern.keys, [&](unsigned key) {
      return llvm::any_of(side->place, [&](const Digits &index) {
        return llvm::is_contained(index, key);
      });
    });
  };
  bool isFirst = hasKeys(sides[0]);
  if (isFirst == hasKeys(sides[1]))
    return fail("expected keys of one operand of the first product");
  for (Element *side : sides)
    if (isa_and_nonnull<DequantizeOp>(side->tensor.getDefiningOp()))
      return fail("its products are quantized by a recipe");
  pattern.q = matchOperand(sides[isFirst]);
  pattern.k = matchOperand(sides[!isFirst]);
  return success();
}

static bool contains(const PlacedTensor &tensor, unsigned digit) {
  return llvm::any_of(tensor.place, [&](const Digits &index) {
    return llvm::is_contained(index, digit);
  });
}

/// Whether `tensor` has each of `wanted` once, and no others.
static bool hasExactly(const PlacedTensor &tensor, ArrayRef<Digits> wanted) {
  SmallVector<unsigned> has, wants;
  for (const Digits &index : tensor.place)
    llvm::append_range(has, index);
  for (const Digits &index : wanted)
    llvm::append_range(wants, index);
  llvm::sort(has);
  llvm::sort(wants);
  return has == wants;
}

LogicalResult Matcher::sortDigits() {
  Digits shared, rows;
  Place loops = getLoops(pattern.product, {});
  for (auto [loop, kind] :
       llvm::enumerate(pattern.product.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel)
      for (unsigned digit : digits.resolve(loops[loop])) {
        bool isOfK = contains(pattern.k, digit);
        bool isOfQ = contains(pattern.q, digit);
        if (isOfQ && isOfK)
          shared.push_back(digit);
        else if (isOfQ)
          rows.push_back(digit);
        else
          pattern.columnsOfV.push_back(digit);
      }
  // Rows that no mask tells from queries are queries as well.
  Digits groups;
  for (unsigned digit : rows)
    if (maskedQueries && !llvm::is_contained(*maskedQueries, digit))
      groups.push_back(digit);
    else
      pattern.queries.push_back(digit);
  if (maskedQueries && pattern.queries != *maskedQueries)
    return fail("expected a mask of a query's own number");
  if (!shared.empty() &&
      !ShapedType::isDynamic(digits.getExtent(shared.back())))
    pattern.headsOfK.push_back(shared.pop_back_val());
  pattern.batch = shared;
  pattern.heads = pattern.headsOfK;
  llvm::append_range(pattern.heads, groups);
  bool isRight = hasExactly(pattern.q, {pattern.batch, pattern.heads,
                                        pattern.queries, pattern.columns}) &&
                 hasExactly(pattern.k, {pattern.batch, pattern.headsOfK,
                                        pattern.keys, pattern.columns}) &&
                 hasExactly(pattern.v, {pattern.batch, pattern.headsOfK,
                                        pattern.keys, pattern.columnsOfV});
  if (!isRight)
    return fail("expected Q, K and V of the same batches and heads, read once "
                "by each, but got {0}, {1} and {2}",
                pattern.q.tensor.getType(), pattern.k.tensor.getType(),
                pattern.v.tensor.getType());
  return success();
}

/// A finite score hides nothing from a query that sees no key.
LogicalResult Matcher::checkWindow() {
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

FailureOr<AttentionPattern> Matcher::match() {
  linalg::LinalgOp op = pattern.product;
  Place loops = getLoops(op, {});
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      llvm::append_range(pattern.keys, loops[loop]);
  trace.emplace(digits, pattern.keys);
  for (unsigned side : {0, 1}) {
    Element *shares = getOperand(op, side, loops);
    if (Element *quantized = skipQuantize(shares))
      if (Element *scores = matchSoftmax(quantized);
          scores && hasProduct(scores))
        return fail("its products are quantized by a recipe");
    Element *scores = matchSoftmax(shares);
    if (!scores || !hasProduct(scores)) {
      pattern.isRounded = false;
      continue;
    }
    ContractionMismatch mismatch;
    if (failed(matchContraction(op, mismatch)))
      return fail("expected a product of matrices, but the second {0}",
                  mismatch.reason);
    if (!isKnownZero(op.getDpsInitOperand(0)->get()))
      return fail("expected a result that starts from zero, but got a sum onto "
                  "others");
    if (failed(matchScores(scores)))
      return failure();
    double scale = pattern.scale;
    pattern.v = matchOperand(getOperand(op, 1 - side, loops));
    if (pattern.scale != scale)
      return fail("expected values without a factor");
    if (failed(sortDigits()) || failed(checkWindow()))
      return failure();
    pattern.ops = llvm::to_vector(trace->getOps());
    return pattern;
  }
  return failure();
}

FailureOr<AttentionPattern> fp8::matchAttention(DigitTable &digits,
                                                linalg::LinalgOp product,
                                                std::string &reason) {
  if (product.getNumDpsInputs() != 2 ||
      !llvm::all_of(product.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return failure();
  // Indices may turn out to be of several digits while one is matched: then
  // once more, with all of them known.
  for (unsigned attempt = 0; attempt < 16; ++attempt) {
    unsigned numCut = digits.getNumCut();
    reason.clear();
    FailureOr<AttentionPattern> pattern =
        Matcher(digits, product, reason).match();
    if (digits.getNumCut() == numCut)
      return pattern;
  }
  return failure();
}
