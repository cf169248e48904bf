//===- AttentionDropout.h - Shares that are left out ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONDROPOUT_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONDROPOUT_H

#include "../Blocks/KernelBuilder.h"
#include "fp8/IR/Dropout.h"

namespace mlir::fp8 {

/// The numbers of a warp's shares.
class AttentionDropout {
public:
  /// `pointer` is to the seed and the offset, two i64; `threshold` is the
  /// rate's. The whole warp is here.
  AttentionDropout(KernelBuilder &b, Value pointer, int64_t threshold);

  /// The words of groups of keys and queries (i32), of a head of all batches'.
  SmallVector<Value> draw(Value ofKeys, Value ofQueries, Value head) const;
  /// Whether (i1) the share is kept whose number is a half of `word`.
  Value isKept(Value word, bool upper) const;
  /// The same for eight accumulators of transposed scores, whose rows are keys:
  /// `ofKeys` has those of the lane's first row, `ofQueries` the first group of
  /// 16 queries. The lane whose row is next has the other half of a call's
  /// words: each makes one of two calls, and both exchange halves.
  SmallVector<Value> areKept(Value lane, Value ofKeys, Value ofQueries,
                             Value head) const;

  /// The same for eight accumulators of scores, whose rows are queries:
  /// `ofKeys` is the group of 16 keys, `ofQueries` that of 16 queries.
  SmallVector<Value> areKeptOfRows(Value lane, Value ofKeys, Value ofQueries,
                                   Value head) const;

  /// The same for 16 keys of a query, which is a lane's: `ofKeys` is their
  /// first group. The lane whose query is 8 away shares the words: each makes
  /// two of four calls, and both exchange them.
  SmallVector<Value> areKeptOfQuery(Value query, Value ofKeys,
                                    Value head) const;

private:
  /// Whether the share is kept whose number is the upper half of `word`.
  Value isUpperKept(Value word) const;
  /// The word of the lane whose number has the other bits where `bits` has one.
  Value exchange(Value word, int64_t bits) const;

  KernelBuilder &b;
  /// Words of the seed and of the offset.
  SmallVector<Value> state;
  int64_t threshold;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONDROPOUT_H
