//===- AttentionLoads.h - Copies of queries, keys and values ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONLOADS_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONLOADS_H

#include "AttentionBlock.h"

namespace mlir::fp8 {

/// A ring of tiles in shared memory, and the map that fills it.
struct AttentionOperand {
  StringRef map;
  Ring ring;
  const SwizzledMatrix &matrix;
  /// Where stage 0 begins.
  int64_t offset;
};

/// Copies a tile of queries to a stage.
void copyQueries(const AttentionBlock &kernel, AttentionOperand queries,
                 RingPosition empty, const AttentionTile &tile);
/// Copies tile `number` (i32) of keys, and of values, to a stage of their
/// rings, which they walk side by side.
void copyKeysAndValues(const AttentionBlock &kernel,
                       ArrayRef<AttentionOperand> operands, RingPosition empty,
                       Value number, const AttentionTile &tile);

/// Where key `key` (i32) of a tile's batch is: the batch, or the page, and the
/// row there.
std::pair<Value, Value> findKey(const AttentionBlock &kernel,
                                const AttentionTile &tile, Value key);

/// Keys that one bulk copy brings: no more than a page has.
int64_t getKeysOfBox(const AttentionSpec &spec, int64_t tileK);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONLOADS_H
