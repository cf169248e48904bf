//===- Dropout.h - Which shares of attention are left out -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The description of `fp8.attention` has the rule. A call of Philox is for two
// rows, 8 apart, of two pairs of columns, 8 apart: what a thread has of an
// accumulator of wgmma. Where scores are transposed it has half of that, of
// twice as many calls.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_DROPOUT_H
#define FP8_IR_DROPOUT_H

#include "fp8/IR/ScalarBuilder.h"

namespace mlir::fp8 {

/// A rate of dropout, of 2^16: shares whose number is less are left out. 0
/// without one.
int64_t getDropThreshold(std::optional<APFloat> rate);

/// What is left is multiplied by, for such a rate.
float getFactorOfKept(int64_t threshold);

/// The words (i32) that numbers depend on, of the seed and the offset.
class DropoutState {
public:
  /// Words of the seed, then of the offset, the lower ones first.
  DropoutState(ScalarBuilder &b, ArrayRef<Value> words);

  /// Philox' four words of a group of keys, one of queries and a head (i32)
  /// among those of all batches.
  SmallVector<Value> draw(ScalarBuilder &b, Value ofKeys, Value ofQueries,
                          Value head) const;

private:
  Value key[2], last;
};

/// Whether (i1) the share of a key is kept; all i32.
Value buildIsKept(ScalarBuilder &b, const DropoutState &state, Value head,
                  Value query, Value key, int64_t threshold);

} // namespace mlir::fp8

#endif // FP8_IR_DROPOUT_H
