//===- AttentionMatcher.h - Finds attention ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONMATCHER_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONMATCHER_H

#include "AttentionPattern.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::fp8 {

/// Follows a product's operands back to another product.
class AttentionMatcher {
public:
  AttentionMatcher(DigitTable &digits, linalg::LinalgOp product,
                   std::string &reason)
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
  /// Whether shares are a softmax that so many operations were done to.
  bool hasChangedShares(Element *shares, unsigned steps);
  Element *skipHiddenRows(Element *element);
  bool isReduction(Element *element, Element *of, bool isMaximum);

  //===--- Scores, AttentionMasks.cpp -------------------------------------===//

  /// Follows scores to the first product.
  LogicalResult matchScores(Element *scores);
  /// One step of that, whose operand is `next`.
  LogicalResult matchStep(Element *step, Element *&next);
  /// A hyperbolic tangent: what it is multiplied by is a cap.
  LogicalResult matchCap();
  LogicalResult matchMask(Element *mask);
  /// Whether an added mask is a condition that hides keys.
  bool matchHiding(Element *mask);
  /// `chosen` where `condition` holds for what `isVisible` says, else hidden.
  LogicalResult matchCondition(Element *condition, bool isVisible,
                               Element *hidden);
  bool hasProduct(Element *element);
  /// Whether conversions that `skipCasts` skips go below 16 bits.
  bool isRoundedToFewBits(Element *element);
  /// A mask that is made of the scores would keep their product.
  LogicalResult checkMask(linalg::LinalgOp product);
  /// A finite score hides nothing from a query that sees no key.
  LogicalResult checkWindow();

  //===--- Operands -------------------------------------------------------===//

  /// The first product, or null.
  linalg::LinalgOp getProduct(Element *element);
  LogicalResult matchOperands(Element *scores);
  /// Q, K or V, before conversions and factors.
  PlacedTensor matchOperand(Element *element);
  LogicalResult sortDigits();

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

/// Whether an element is what an operation makes of others, one of these.
template <typename... OpTys>
bool isOp(Element *element) {
  return element->kind == Element::Kind::Operation &&
         isa<OpTys...>(element->op);
}

/// Whether a type has fewer bits than what attention is computed in.
inline bool isNarrow(Type type) {
  return type && type.isFloat() && type.getIntOrFloatBitWidth() < 16;
}

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONMATCHER_H
