//===- AttentionBackwardContext.h - What its parts share --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDCONTEXT_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDCONTEXT_H

#include "../Attention/AttentionBackwardTiles.h"
#include "../Blocks/Ring.h"
#include "AttentionBackwardMemory.h"

namespace mlir::fp8::sm90 {

/// What is computed and how, where it lies, and which thread this is.
struct AttentionBackwardContext {
  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  AttentionConfigAttr config;
  const AttentionBackwardMemory &memory;
  const llvm::StringMap<Value> &params;
  AttentionBackwardTiles &tiles;
  /// Numbers of K and of V, two stages that are filled once, and their codes.
  Ring keys, codesOfKeys;
  /// A step's: numbers of Q with what is known of its rows, codes of Q, and
  /// the result's gradient.
  Ring queries, codesOfQueries, grads;
  /// Gradients of scores: the warps that multiply fill a stage by giving it
  /// back; and sums that are on their way to dQ.
  Ring scores, added;
  /// Dynamic shared memory, and its address (i32).
  Value shared, base;
  Value thread, warp, lane;

  static constexpr int64_t kConsumers = AttentionBackwardMemory::kConsumers;
  static constexpr int64_t kConsumerWarps = 4 * kConsumers;
  /// Warps of the other warpgroup: the first copies; the second has the rows'
  /// numbers; the third ends tiles of dQ. In the fourth, and in the second as
  /// well, codes become numbers; without codes the fourth ends every other
  /// tile.
  static constexpr int64_t kCopies = 0, kRows = 1, kEnds = 2, kConverts = 3;

  Value getParam(StringRef name) const { return params.lookup(name); }
  /// Coordinates of a bulk copy, the innermost first.
  SmallVector<Value> getCoordinates(Value column, Value sequence, Value head,
                                    Value batch) const {
    if (spec.layout == fp8::AttentionLayout::BSHD)
      return {column, head, sequence, batch};
    return {column, sequence, head, batch};
  }
  /// Number `stage` of tiles of `matrix` that begin at `offset`.
  Value getPlace(const SharedMatrix &matrix, int64_t offset,
                 Value stage) const {
    return b.add(b.mul(stage, llvm::alignTo(matrix.getBytes(), 1024)), offset);
  }
  /// Number `which` of the first query of a stage (a pointer): 0 for exponents,
  /// 1 for `delta`, 2 for its range of keys.
  Value getRows(Value stage, int64_t which) const {
    return b.offset(shared,
                    b.add(b.mul(stage, memory.bytesOfRows),
                          memory.offsetRows + which * config.getTileQ() * 4));
  }
  /// The ends of the ranges of all of its queries.
  Value getEnds(Value stage) const {
    int64_t tileQ = config.getTileQ();
    return b.offset(getRows(stage, 2), b.i32(tileQ * 2));
  }
  /// The factor of Q, K or V, null if it has none.
  Value getFactor(StringRef name) const {
    Value pointer = getParam((name + "_scale.ptr").str());
    return pointer ? b.loadConstant(pointer, b.getF32Type()) : Value();
  }

  /// Registers of a thread's part of a tile of dQ.
  int64_t getAddedRegisters() const {
    return config.getTileQ() * spec.headDim / (128 * kConsumers);
  }
  /// Where four of these are, chunk `chunk` (i32), of thread `thread` (i32) of
  /// warpgroup `group` (i32): what a warp adds at a time lies side by side.
  Value getSums(Value tile, Value group, Value chunk, Value thread) const {
    int64_t chunks = getAddedRegisters() / 4;
    Value place = b.add(b.mul(b.widen(tile), kConsumers), b.widen(group));
    place = b.add(b.mul(place, chunks), b.widen(chunk));
    place = b.add(b.mul(place, 128), b.widen(thread));
    return b.element(getParam("sums.ptr"), b.mul(place, 4), b.getF32Type());
  }
};

/// The warpgroup that copies and converts, and ends tiles of dQ.
void buildAttentionBackwardProducer(const AttentionBackwardContext &kernel);
/// A warp of it that ends tiles, number `part` of these.
void buildEndsOfTiles(const AttentionBackwardContext &kernel, int64_t part);
/// The warpgroups that multiply.
void buildAttentionBackwardConsumer(const AttentionBackwardContext &kernel);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDCONTEXT_H
