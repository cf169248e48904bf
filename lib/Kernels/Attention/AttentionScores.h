//===- AttentionScores.h - Scores before their softmax ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONSCORES_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONSCORES_H

#include "AttentionBlock.h"
#include "ScoreLayout.h"

namespace mlir::fp8 {

/// Scores that bend towards a cap.
class Cap {
public:
  /// `factor` (f32) makes exponents of 2 of scores.
  Cap(KernelBuilder &b, float cap, Value factor);
  /// The exponent of 2 that a score becomes; `share`, if it is asked for, is
  /// (1 - t) / 2 of its hyperbolic tangent t.
  Value bend(Value score, Value *share = nullptr) const;
  /// 1 - t^2.
  Value getSlope(Value share) const;

private:
  KernelBuilder &b;
  /// The cap as an exponent of 2, and what is exponentiated for a tangent.
  float most;
  Value factor;
};

/// What a cap and a mask make of the scores of a tile of keys.
class AttentionScores {
public:
  /// `factors` of the rows of a thread make exponents of 2 of scores; `rows`
  /// are its rows, if there is a mask.
  AttentionScores(const AttentionBlock &kernel, ScoreLayout layout,
                  const AttentionTile &tile, const Value (&factors)[2],
                  ArrayRef<AttentionRow> rows);

  /// Whether scores have become exponents of 2.
  static bool makesExponents(const AttentionSpec &spec) {
    return spec.cap || spec.hasAddedMask();
  }
  /// The scores of tile `number` of keys; the last may have some that are not
  /// there.
  SmallVector<Value> apply(ArrayRef<Value> scores, Value number,
                           bool isLast) const;

private:
  /// `inPairs` loads elements of both keys of a thread that lie together.
  SmallVector<Value> applyMask(ArrayRef<Value> scores, Value number,
                               bool isLast, bool inPairs) const;
  /// With a mask that is the same for all keys.
  SmallVector<Value> applyMaskOfRows(ArrayRef<Value> scores) const;
  Value add(Value element, Value score) const;
  /// The elements of two keys of a row; without `next` these lie together.
  std::pair<Value, Value> loadPair(int64_t row, Value key, Value next) const;
  /// One in memory as an i1, or f32.
  Value finish(Value element) const;

  const AttentionBlock &kernel;
  KernelBuilder &b;
  const AttentionSpec &spec;
  ScoreLayout layout;
  /// The tile's, by which keys have numbers; null where they have the mask's.
  Value origin;
  Value factors[2];
  /// Where the mask has the first key of each row; whether pairs of keys
  /// begin where a pair can be loaded (i1).
  Value places[2], arePairs;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONSCORES_H
