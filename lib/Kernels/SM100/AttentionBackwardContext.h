//===- AttentionBackwardContext.h - What its gradient shares ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_ATTENTIONBACKWARDCONTEXT_H
#define FP8_LIB_KERNELS_SM100_ATTENTIONBACKWARDCONTEXT_H

#include "../Attention/AttentionBackwardBlock.h"
#include "AttentionBackwardMemory.h"

namespace mlir::fp8::sm100 {

/// What is computed and how, where it lies, and which thread this is.
struct AttentionBackwardContext : AttentionBackwardBlock {
  AttentionConfigAttr config;
  const AttentionBackwardMemory &memory;
  /// K and V, two stages that are filled once; and what a step has of queries,
  /// of the result's gradient, and of numbers of rows.
  Ring keys, queries, grads, rows;
  /// A stage each: scores, which are given back as P; products of V, which are
  /// given back as gradients of scores; and a step's part of dQ.
  Ring scores, products, parts;
  /// Turns to add to dQ; and all sums, which nobody gives back.
  Ring added, sums;
  /// Address of the block's columns in tensor memory, once it has them.
  Value columns;

  /// Column `column` of them, in the lanes of this warp.
  Value getColumn(int64_t column) const {
    return b.add(b.add(columns, b.mul(b.bitAnd(warp, 3), int64_t(32) << 16)),
                 column);
  }
};

/// All steps, with a position of `ring` and the phase of the rings of one
/// stage.
void forEachStep(
    const AttentionBackwardContext &kernel, Ring ring,
    llvm::function_ref<void(BackwardStep, RingPosition, Value)> body);
/// The warp that multiplies.
void buildBackwardMultiplier(const AttentionBackwardContext &kernel);
/// The warpgroups that make P and gradients of scores, and store dV and dK.
void buildBackwardScores(const AttentionBackwardContext &kernel);
/// The warps that add to dQ, and the one that gives them turns.
void buildBackwardAdder(const AttentionBackwardContext &kernel);
void buildBackwardTurns(const AttentionBackwardContext &kernel);

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_ATTENTIONBACKWARDCONTEXT_H
