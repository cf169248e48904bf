//===- AttentionWindow.h - Which keys a condition shows ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONWINDOW_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONWINDOW_H

#include "ElementTrace.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::fp8 {

/// Reads a condition on numbers of keys and queries, made of comparisons, as
/// limits of their difference.
class WindowMatcher {
public:
  WindowMatcher(ElementTrace &trace, ArrayRef<unsigned> keys)
      : trace(trace), keys(keys) {}

  /// Keys for which `condition` is `isVisible` are seen.
  LogicalResult match(Element *condition, bool isVisible);

  /// The digits that count queries, where it is about them.
  std::optional<Digits> queries;
  /// Limits of key - query.
  std::optional<int64_t> first, last;

private:
  /// ofKey * key + ofQuery * query + number. Neither the sum nor any part of it
  /// is further from 0 than `most`.
  struct Sum {
    int64_t ofKey = 0, ofQuery = 0, number = 0, most = 0;
  };
  std::optional<Sum> getIndex(Element *element);
  std::optional<Sum> getConverted(Element *element, unsigned depth);
  std::optional<Sum> getSum(Element *element, unsigned depth = 0);
  LogicalResult matchComparison(Element *comparison, bool isVisible);
  /// What is chosen by a condition and compared with a number, as an added mask
  /// is that becomes one of i1.
  LogicalResult matchChosen(Element *comparison, bool isVisible);
  /// Whether a comparison with 0 holds for all keys and queries.
  bool isAlways(const Sum &sum, arith::CmpIPredicate predicate) const;

  ElementTrace &trace;
  /// How often `match` was called.
  unsigned steps = 0;
  ArrayRef<unsigned> keys;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONWINDOW_H
