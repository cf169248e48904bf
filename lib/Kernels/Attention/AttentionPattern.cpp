//===- AttentionPattern.cpp - Attention as programs spell it --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionMatcher.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Element::Kind;

Place AttentionMatcher::getLoops(linalg::LinalgOp op, const Place &result) {
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

Element *AttentionMatcher::getOperand(linalg::LinalgOp op, unsigned operand,
                                      const Place &loops) {
  Place place;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInputOperand(operand));
  for (AffineExpr expr : map.getResults())
    place.push_back(loops[cast<AffineDimExpr>(expr).getPosition()]);
  return trace->get(op.getDpsInputOperand(operand)->get(), std::move(place));
}

Element *AttentionMatcher::skipQuantize(Element *element) {
  auto dequantize = element->tensor.getDefiningOp<DequantizeOp>();
  if (!dequantize)
    return nullptr;
  auto quantize = dequantize.getOperand().getDefiningOp<QuantizeOp>();
  return quantize ? trace->get(quantize.getSource(), element->place) : nullptr;
}

//===----------------------------------------------------------------------===//
// The softmax
//===----------------------------------------------------------------------===//

/// PyTorch has zeros where all scores are -inf, as we have.
Element *AttentionMatcher::skipHiddenRows(Element *element) {
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

bool AttentionMatcher::isReduction(Element *element, Element *of,
                                   bool isMaximum) {
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

Element *AttentionMatcher::matchSoftmax(Element *shares) {
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

bool AttentionMatcher::hasChangedShares(Element *shares, unsigned steps) {
  Element *step = trace->skipCasts(shares);
  if (steps == 0 || !isOp<arith::MulFOp, arith::DivFOp, arith::SelectOp>(step))
    return false;
  return llvm::any_of(step->operands, [&](Element *operand) {
    Element *scores = matchSoftmax(operand);
    return (scores && hasProduct(scores)) ||
           hasChangedShares(operand, steps - 1);
  });
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

PlacedTensor AttentionMatcher::matchOperand(Element *element) {
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

LogicalResult AttentionMatcher::matchOperands(Element *scores) {
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

LogicalResult AttentionMatcher::sortDigits() {
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

FailureOr<AttentionPattern> AttentionMatcher::match() {
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
      if (hasChangedShares(shares, /*steps=*/4))
        return fail("something is done to its shares between the softmax and "
                    "the second product, as dropout by a mask does");
      pattern.isRounded = false;
      hiddenOf = nullptr;
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
        AttentionMatcher(digits, product, reason).match();
    if (digits.getNumCut() == numCut)
      return pattern;
  }
  return failure();
}
