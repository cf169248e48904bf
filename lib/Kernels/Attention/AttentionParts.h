//===- AttentionParts.h - Attention of few queries --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONPARTS_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONPARTS_H

#include "AttentionBlock.h"
#include "AttentionSignature.h"
#include "Softmax.h"

namespace mlir::fp8 {

/// What the blocks that share a tile's keys leave in a workspace, f32: of each
/// part of each tile the sums of P V, row after row, and then of each row the
/// largest exponent of 2 and the sum of powers.
struct PartsLayout {
  /// Rows of a tile that can be there, and columns of V.
  int64_t rows, columns;

  /// `tileRows` have room for `tileHeads` heads of some queries.
  PartsLayout(const AttentionSpec &spec, int64_t tileRows, int64_t tileHeads);
  /// Numbers of a part: sums of all rows, then the exponent and the powers of
  /// each, and what has the next part begin at 16 bytes.
  int64_t getSize() const { return rows * (columns + 4); }
};

/// Tiles of keys that a block has at least of few queries' keys: of less its
/// beginning and end take most of the time.
int64_t getSplitTiles(const AttentionSpec &spec, int64_t tileK);

/// Adds what threads need that copy the rows of few queries and store their
/// results themselves, and put parts of keys together, `keysOfPart` each at
/// least. Returns how many blocks there is work for.
AffineExpr addParts(AttentionSignature &made, const AttentionSpec &spec,
                    PartsLayout layout, int64_t tileHeads, int64_t keysOfPart);

/// Which of a tile's sums of P V a thread has when they are stored.
enum class SumsOrder {
  /// Accumulators of wgmma, of two rows.
  Pairs,
  /// The same where even columns of values come before odd ones.
  Quads,
  /// Four of each 16 columns of its lane's row, number after number of the
  /// warp.
  Fours
};

/// Rows of a tile of few queries, of several heads: 128 threads copy them, and
/// store what comes of them.
class AttentionParts {
public:
  /// `offsetFlag` is that of a word of shared memory, which says which of a
  /// tile's blocks came last.
  AttentionParts(const AttentionBlock &kernel, PartsLayout layout,
                 SumsOrder order, int64_t offsetFlag)
      : kernel(kernel), b(kernel.b), spec(kernel.spec), layout(layout),
        order(order), offsetFlag(offsetFlag) {}

  /// Copies a tile's queries to byte `offset` of shared memory, for tensor
  /// cores, `copies` times one below the other. All threads have read those
  /// before.
  void loadQueries(const AttentionTile &tile, const SwizzledMatrix &q,
                   int64_t offset, int64_t copies);
  /// The row that is a thread's first, or 8 below it.
  AttentionRow getOwnRow(const AttentionTile &tile, int64_t half);
  /// Divides `sums` by those of the powers, which `totals` has of each row of
  /// the thread, and stores them; or leaves a part of them, and stores all if
  /// it is the last.
  void store(const AttentionTile &tile, ArrayRef<Value> sums,
             ArrayRef<Softmax::Total> totals, float logOfP);

private:
  /// Where a row of Q or of the result begins.
  Value getAddress(StringRef name, Type element, const AttentionTile &tile,
                   const AttentionRow &row);
  /// The number of a row of this thread in the tile.
  Value getRowNumber(int64_t half);
  /// Whether this thread stores what there is once for a row (i1).
  Value storesOfRow();
  /// Neighbours that a thread has of one of its rows, the number of their first
  /// column, as a value and what is added to it, and what `store` makes of
  /// them.
  void forEachRun(
      ArrayRef<Value> sums, int64_t half,
      llvm::function_ref<void(Value column, int64_t more, ValueRange)> store);
  /// Rounds `numbers` and stores them beside each other.
  void storeNumbers(ValueRange numbers, Value address);
  void storeWhole(const AttentionTile &tile, ArrayRef<Value> sums,
                  ArrayRef<Softmax::Total> totals, float logOfP);
  /// The same of an invariant operation, as where there are several parts: with
  /// nothing before.
  void storeOnlyPart(const AttentionTile &tile, ArrayRef<Value> sums,
                     ArrayRef<Softmax::Total> totals, float logOfP);
  void leavePart(const AttentionTile &tile, ArrayRef<Value> sums,
                 ArrayRef<Softmax::Total> totals);
  /// Puts all parts together, a row a warp at a time.
  void combine(const AttentionTile &tile, float logOfP);
  void combineRow(const AttentionTile &tile, Value number, float logOfP);
  /// Adds the next 32 parts, beginning with `first`, to what is carried: the
  /// largest exponent, the sum of powers, and sums of this lane's columns.
  SmallVector<Value> combineParts(const AttentionTile &tile, Value number,
                                  Value first, ValueRange carried);
  /// The same for an invariant operation: all parts, from the last to the
  /// first, as kernels of many queries walk the keys.
  SmallVector<Value> mergeParts(const AttentionTile &tile, Value number,
                                ValueRange initial);
  /// Where row `row` of a part has its sums, and its exponent and power (f32).
  Value getSums(const AttentionTile &tile, Value part, Value row);
  Value getPowers(const AttentionTile &tile, Value part, Value row);

  const AttentionBlock &kernel;
  KernelBuilder &b;
  const AttentionSpec &spec;
  PartsLayout layout;
  SumsOrder order;
  int64_t offsetFlag;
  Value thread, lane;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONPARTS_H
