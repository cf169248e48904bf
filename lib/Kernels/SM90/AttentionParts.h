//===- AttentionParts.h - Attention of few queries --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONPARTS_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONPARTS_H

#include "../Attention/Softmax.h"
#include "AttentionContext.h"

namespace mlir::fp8::sm90 {

/// What the blocks that share a tile's keys leave in a workspace, f32: of each
/// part of each tile the sums of P V, row after row, and then of each row the
/// largest exponent of 2 and the sum of powers.
struct PartsLayout {
  /// Rows of a tile that can be there, and columns of V.
  int64_t rows, columns;

  PartsLayout(const AttentionSpec &spec, AttentionConfigAttr config);
  /// Numbers of a part: sums of all rows, then the exponent and the powers of
  /// each, and what has the next part begin at 16 bytes.
  int64_t getSize() const { return rows * (columns + 4); }
};

/// Rows of a tile of few queries, of several heads: their threads copy them,
/// and store what comes of them.
class AttentionParts {
public:
  explicit AttentionParts(const AttentionContext &kernel);

  /// Copies a tile's queries to shared memory, for wgmma. All threads have read
  /// those before.
  void loadQueries(const AttentionTile &tile);
  /// The row that is a thread's first, or 8 below it.
  AttentionRow getOwnRow(const AttentionTile &tile, int64_t half);
  /// Divides `sums` by those of the powers, which `rows` has of each lane, and
  /// stores them; or leaves a part of them, and stores all if it is the last.
  void store(const AttentionTile &tile, Softmax &softmax, ArrayRef<Value> sums,
             const Softmax::Rows &rows);

private:
  /// Where a row of Q or of the result begins.
  Value getAddress(StringRef name, Type element, const AttentionTile &tile,
                   const AttentionRow &row);
  /// Neighbours that a thread has of one of its rows, the number of their first
  /// column, less the thread's, and what `store` makes of them.
  void forEachRun(ArrayRef<Value> sums, int64_t half,
                  llvm::function_ref<void(Value column, ValueRange)> store);
  /// Rounds `numbers` and stores them beside each other.
  void storeNumbers(ValueRange numbers, Value address);
  void storeWhole(const AttentionTile &tile, Softmax &softmax,
                  ArrayRef<Value> sums, const Value (&exponents)[2],
                  const Value (&powers)[2]);
  void leavePart(const AttentionTile &tile, ArrayRef<Value> sums,
                 const Value (&exponents)[2], const Value (&powers)[2]);
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

  const AttentionContext &kernel;
  KernelBuilder &b;
  const AttentionSpec &spec;
  const AttentionMemory &memory;
  PartsLayout layout;
  Value thread, lane;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONPARTS_H
