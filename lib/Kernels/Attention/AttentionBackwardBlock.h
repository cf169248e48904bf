//===- AttentionBackwardBlock.h - What gradients share ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDBLOCK_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDBLOCK_H

#include "AttentionBackwardSignature.h"
#include "AttentionBackwardTiles.h"
#include "SwizzledMatrix.h"

namespace mlir::fp8 {

/// What is computed, and which thread this is, where a block has keys and adds
/// to dQ in global memory.
struct AttentionBackwardBlock {
  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  const llvm::StringMap<Value> &params;
  AttentionBackwardTiles &tiles;
  /// Queries of a step, and keys.
  int64_t tileQ, tileK;
  /// Where numbers of a step's rows are in shared memory. A stage is two
  /// numbers (f32) of each query: the logarithm of its sum as an exponent of 2,
  /// and `delta`, both negative. With ranges of keys two bytes of each query
  /// follow, which of the block's keys is the first that it sees and which is
  /// behind the last, and then four numbers (i32) of all queries: the least
  /// first key and the largest last one, and the reverse.
  int64_t offsetRows, bytesOfRows;
  /// Dynamic shared memory, and its address (i32).
  Value shared, base;
  Value thread, warp, lane;

  static int64_t getBytesOfRows(const AttentionBackwardSpec &spec,
                                int64_t tileQ) {
    return 2 * tileQ * 4 + (spec.hasKeyRanges ? tileQ * 2 + 16 : 0);
  }
  Value getParam(StringRef name) const { return params.lookup(name); }
  /// Coordinates of a bulk copy, the innermost first.
  SmallVector<Value> getCoordinates(Value column, Value sequence, Value head,
                                    Value batch) const {
    if (spec.layout == fp8::AttentionLayout::BSHD)
      return {column, head, sequence, batch};
    return {column, sequence, head, batch};
  }
  /// Number `stage` of tiles of `matrix` that begin at `offset`.
  Value getPlace(const SwizzledMatrix &matrix, int64_t offset,
                 Value stage) const {
    return b.add(b.mul(stage, llvm::alignTo(matrix.getBytes(), 1024)), offset);
  }
  /// Number `which` of the first query of a stage (a pointer): 0 for exponents,
  /// 1 for `delta`, 2 for its range of keys.
  Value getRows(Value stage, int64_t which) const {
    return b.offset(shared, b.add(b.mul(stage, bytesOfRows),
                                  offsetRows + which * tileQ * 4));
  }
  /// The ends of the ranges of all of its queries.
  Value getEnds(Value stage) const {
    return b.offset(getRows(stage, 2), b.i32(tileQ * 2));
  }
  /// The same, one after the other.
  SmallVector<Value> loadEnds(Value stage) const;
  /// The factor of Q, K or V, null if it has none.
  Value getFactor(StringRef name) const {
    Value pointer = getParam((name + "_scale.ptr").str());
    return pointer ? b.loadConstant(pointer, b.getF32Type()) : Value();
  }
};

/// Adds what sums dQ of all blocks in their order, and what begins these in it.
/// Returns how many blocks there are.
AffineExpr addSums(AttentionBackwardSignature &made,
                   const AttentionBackwardSpec &spec, int64_t tileQ,
                   int64_t tileK);

/// Draws the block's ticket, in the order in which blocks run, to byte `offset`
/// of shared memory: one thread does.
void drawTicket(const AttentionBackwardBlock &kernel, int64_t offset);

/// Copies a tile of `map` whose first row is `sequence` to byte `place` (i32),
/// box by box, and announces its bytes at `stage` of `ring`.
void copyTile(const AttentionBackwardBlock &kernel, Ring ring, Value stage,
              StringRef map, const SwizzledMatrix &matrix, Value place,
              Value sequence, Value head);

/// Where dQ has column `column` (i32) of a step's query `query` (i32).
Value getResultOf(const AttentionBackwardBlock &kernel, BackwardStep step,
                  Value query, Value column);

/// Writes the numbers of a step's rows to a stage; a warp does.
void writeRows(const AttentionBackwardBlock &kernel, BackwardStep step,
               Value stage);

/// Whether some of the block's keys are hidden from some of a step's queries
/// (i1).
Value hidesSome(const AttentionBackwardBlock &kernel, BackwardStep step,
                Value stage);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDBLOCK_H
