//===- AttentionPattern.h - Attention as programs spell it ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONPATTERN_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONPATTERN_H

#include "ElementTrace.h"

namespace mlir::fp8 {

/// A tensor, and which digits each of its dimensions has.
struct PlacedTensor {
  Value tensor;
  Place place;
};

/// The softmax of products, times values, that a program has.
struct AttentionPattern {
  linalg::LinalgOp scores, product;
  PlacedTensor q, k, v;
  /// A tensor that is added to scores, or of i1, where 0 hides.
  std::optional<PlacedTensor> mask;
  /// Digits of the dimensions that `fp8.attention` has.
  Digits batch, heads, headsOfK, queries, keys, columns, columnsOfV;
  double scale = 1;
  /// What scores bend towards.
  std::optional<double> cap;
  /// Limits of j - i for keys j that query i sees.
  std::optional<int64_t> first, last;
  /// Whether the program rounds shares before their product with V.
  bool isRounded = false;
  /// What moves data and computes between the products.
  SmallVector<Operation *> ops;
};

/// Matches attention whose second product is `product`. Without a softmax of
/// products in it `reason` stays empty.
FailureOr<AttentionPattern> matchAttention(DigitTable &digits,
                                           linalg::LinalgOp product,
                                           std::string &reason);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONPATTERN_H
