//===- AttentionTilePowers.h - Powers without maxima ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows keep the maximum that they have while a tile's powers fit their type. So
// nothing is compared before these are computed, no lanes exchange maxima, and
// sums stay as they are. Words of P say whether one was too large: only then
// maxima are raised, and the tile's powers computed once more.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONTILEPOWERS_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONTILEPOWERS_H

#include "../Attention/Softmax.h"
#include "AttentionContext.h"

namespace mlir::fp8::sm90 {

/// Powers of a tile of keys, as operands of the product with V.
struct TilePowers {
  SmallVector<Value> words;
  Softmax::Rows rows;
  /// What sums of earlier powers are multiplied by, and whether a row of the
  /// warp has another one than 1 (i1).
  Value corrections[2], areRaised;
};

/// By how many binades powers are smaller than their type would allow, so that
/// rows seldom outgrow it: each that does costs its warp a second softmax.
/// Codes and f16 have few; in bf16 there are more than scores of any use grow.
int64_t getMarginOfMaxima(Type type);

/// Exponentiates `scores`, times `factors` of both rows, which have the maxima
/// and sums of `rows`. A row raises its maximum if one of its own powers is too
/// large, whatever the others of the warp are. All come after `zero` (i32),
/// which may be null.
TilePowers computeTilePowers(const AttentionContext &kernel, Softmax &softmax,
                             const Value (&factors)[2], ArrayRef<Value> scores,
                             const Softmax::Rows &rows, Value zero);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONTILEPOWERS_H
