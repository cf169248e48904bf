//===- AttentionRows.h - What rows of scores are and become -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONROWS_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONROWS_H

#include "AttentionBlock.h"
#include "Softmax.h"

namespace mlir::fp8 {

/// The factor (f32) of `name`, "q", "k" or "v", that head `head` of it has.
Value getFactorOf(const AttentionBlock &kernel, StringRef name, Value batch,
                  Value head);
/// The same of position `position` (i32), where blocks of these have factors of
/// their own; of one beyond the last any number.
Value getFactorAt(const AttentionBlock &kernel, StringRef name, Value batch,
                  Value head, Value position);
/// What makes exponents of 2 (f32) of scores of head `head` of Q, and of query
/// `query` where blocks of these have factors; without that of keys where
/// blocks of those have.
Value getFactorOfScores(const AttentionBlock &kernel, const AttentionTile &tile,
                        Value head, Value query = Value());

/// With sinks, adds that of head `head` of Q to a row's: see Softmax::addScore.
/// Null without.
Value addSink(const AttentionBlock &kernel, Value head, Value &exponent,
              Value &sum, float logOfP);
/// The factor of a row's sums of products, from the sum of its powers, to which
/// a sink is added, and to the largest exponent.
Value getFactorOfSums(const AttentionBlock &kernel, const AttentionTile &tile,
                      Value head, Value &exponent, Value &sum, float logOfP);

/// Stores the logarithm of the sum of a row's exponentials.
void storeLse(const AttentionBlock &kernel, const AttentionTile &tile,
              Value head, Value query, Value value);

/// The keys of tile `number` that the rows of a thread see.
Softmax::Window getWindow(const AttentionBlock &kernel, ScoreLayout layout,
                          const AttentionTile &tile, Value number);
/// The rows of a thread, whose queries are of one head; of one that is beyond
/// the last query, this.
SmallVector<AttentionRow> getOwnRows(const AttentionBlock &kernel,
                                     ScoreLayout layout,
                                     const AttentionTile &tile);
/// The same, none without a mask.
SmallVector<AttentionRow> getMaskedRows(const AttentionBlock &kernel,
                                        ScoreLayout layout,
                                        const AttentionTile &tile);

/// Tiles of keys from the last but one of those that a tile of queries sees
/// down to the first, in runs down to `to` (i32), of which `from` is one
/// beyond: `masked` ones are not seen by all queries as a whole.
void forEachRunOfKeys(
    const AttentionBlock &kernel, const AttentionTile &tile,
    llvm::function_ref<void(Value from, Value to, bool masked)> walk);

/// Writes zeros over rows of a tile of values at byte `place` (i32) of shared
/// memory, those of which `isHidden` says so: they may be anything, and a power
/// of 0 times NaN is NaN. The first `threads` threads of the block.
void hideRows(const AttentionBlock &kernel, const SwizzledMatrix &values,
              Value place, int64_t threads,
              llvm::function_ref<Value(Value row)> isHidden);

/// Whether `lhs` is less, with a sign.
Value isBefore(KernelBuilder &b, Value lhs, Value rhs);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONROWS_H
