//===- AttentionMultiplier.cpp - The warp that multiplies -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The product of P and a tile of values comes before that of Q and the next
// tile of keys, whose scores take P's place: a thread's products take place in
// order. While one half of the queries is exponentiated, the tensor core has
// the other's products. Ted Zadouri and others, "FlashAttention-4" (2026), has
// the schedule.
//
//   S0 = Q0 K[last];  S1 = Q1 K[last]
//   for tiles from the last but one:  O0 += P0 V;  S0 = Q0 K
//                                     O1 += P1 V;  S1 = Q1 K
//   O0 += P0 V;  O1 += P1 V
//
//===----------------------------------------------------------------------===//

#include "../Blocks/Hazards.h"
#include "AttentionContext.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

namespace {
class AttentionMultiplier {
public:
  explicit AttentionMultiplier(const AttentionContext &kernel);
  void build();

private:
  /// Positions in the rings of keys and of values, and the phase in which P is
  /// there.
  struct State {
    RingPosition k, v;
    Value phase;
    SmallVector<Value> pack() const {
      return {k.stage, k.phase, v.stage, v.phase, phase};
    }
    static State unpack(ValueRange values) {
      return {{values[0], values[1]}, {values[2], values[3]}, values[4]};
    }
  };

  /// One thread's: scores of a half and stage `stage` of K, which arrive.
  void multiplyQK(int64_t half, Value stage);
  /// Sums of a half with P, once it is there, and stage `stage` of V.
  void multiplyPV(int64_t half, Value phase, Value stage, Value accumulates);
  /// Has what this thread has issued arrive when it is done.
  void commit(Value barrier) {
    NVVM::Tcgen05CommitOp::create(b, barrier, /*multicastMask=*/Value());
  }

  /// Scores of the first tile of keys; sums with the tile of values before, and
  /// the next scores; and the last sums.
  void begin(RingPosition queries, State &state);
  void step(Value accumulates, State &state);
  void finish(Value accumulates, State &state);

  const AttentionContext &kernel;
  KernelBuilder &b;
  const AttentionMemory &memory;
  Ring ringOfQ, ringOfK, ringOfV, scores, sums;
  int64_t halves;
  Tcgen05Instruction qk, pv;
  /// Descriptors (i64) of Q, and of stage 0 of K and of V.
  Value q, k, v;
};
} // namespace

AttentionMultiplier::AttentionMultiplier(const AttentionContext &kernel)
    : kernel(kernel), b(kernel.b), memory(kernel.memory), ringOfQ(kernel.q),
      ringOfK(kernel.k), ringOfV(kernel.v), scores(kernel.scores),
      sums(kernel.sums), halves(kernel.config.getHalves()),
      qk{kernel.spec.q, kernel.spec.k, /*transposedB=*/false, kernel.tileK},
      pv{kernel.spec.v, kernel.spec.v, /*transposedB=*/true,
         kernel.spec.headDimOfV} {
  auto describe = [&](const SwizzledMatrix &matrix, int64_t offset,
                      int64_t leading) {
    return makeDescriptor(b, b.add(kernel.base, offset), leading,
                          /*strideOffset=*/8 * matrix.width, matrix.width);
  };
  // With columns as K the leading offset is ignored.
  q = describe(memory.q, memory.offsetQ, 16);
  k = describe(memory.k, memory.offsetK, 16);
  v = describe(memory.v, memory.offsetV, memory.v.getBoxBytes());
}

/// `descriptor`, of stage 0, moved to stage `stage`. There is no room for those
/// of all products and stages, which LLVM would compute ahead of time.
static Value moveToStage(KernelBuilder &b, Value descriptor,
                         const SwizzledMatrix &matrix, Value stage) {
  return Tcgen05::advance(
      b, descriptor,
      b.mul(launder(b, stage), llvm::alignTo(matrix.getBytes(), 1024)));
}

void AttentionMultiplier::multiplyQK(int64_t half, Value stage) {
  Value number = b.i32(half);
  Value queries = Tcgen05::advance(
      b, q, launder(b, b.i32(half * kQueries * memory.q.width)));
  Value keys = moveToStage(b, k, memory.k, stage);
  for (int64_t i = 0, e = memory.q.rowBytes / 32; i < e; ++i)
    qk.multiply(b, kernel.getScores(number),
                advanceBy(b, queries, memory.q.getStepBytes(i)),
                advanceBy(b, keys, memory.k.getStepBytes(i)),
                /*accumulates=*/b.i1(i != 0));
  commit(scores.getFullBarrier(number));
}

void AttentionMultiplier::multiplyPV(int64_t half, Value phase, Value stage,
                                     Value accumulates) {
  Value number = b.i32(half);
  scores.waitEmpty({number, phase});
  fenceAfterSync(b);
  Value values = moveToStage(b, v, memory.v, stage);
  Value p = launder(b, kernel.getScores(number));
  // P is side by side: 32 bytes are eight columns.
  constexpr int64_t columns = 8;
  for (int64_t i = 0, e = kernel.tileK / pv.getK(); i < e; ++i)
    pv.multiply(b, kernel.getSums(number), b.add(p, i * columns),
                advanceBy(b, values, i * pv.getK() * memory.v.width),
                i == 0 ? accumulates : b.i1(true));
}

void AttentionMultiplier::begin(RingPosition queries, State &state) {
  ringOfK.waitFull(state.k);
  ringOfQ.waitFull(queries);
  b.electOne([&] {
    for (int64_t half = 0; half < halves; ++half)
      multiplyQK(half, state.k.stage);
    commit(ringOfK.getEmptyBarrier(state.k.stage));
  });
  state.k = ringOfK.advance(state.k);
}

void AttentionMultiplier::step(Value accumulates, State &state) {
  ringOfK.waitFull(state.k);
  ringOfV.waitFull(state.v);
  b.electOne([&] {
    for (int64_t half = 0; half < halves; ++half) {
      multiplyPV(half, state.phase, state.v.stage, accumulates);
      multiplyQK(half, state.k.stage);
    }
    commit(ringOfV.getEmptyBarrier(state.v.stage));
    commit(ringOfK.getEmptyBarrier(state.k.stage));
  });
  state = {ringOfK.advance(state.k), ringOfV.advance(state.v),
           b.bitXor(state.phase, b.i32(1))};
}

void AttentionMultiplier::finish(Value accumulates, State &state) {
  ringOfV.waitFull(state.v);
  b.electOne([&] {
    // Its products have all been issued.
    if (!kernel.config.isForFewQueries())
      commit(ringOfQ.getEmptyBarrier(b.i32(0)));
    for (int64_t half = 0; half < halves; ++half) {
      multiplyPV(half, state.phase, state.v.stage, accumulates);
      commit(sums.getFullBarrier(b.i32(half)));
    }
    commit(ringOfV.getEmptyBarrier(state.v.stage));
  });
  state.v = ringOfV.advance(state.v);
  state.phase = b.bitXor(state.phase, b.i32(1));
}

void AttentionMultiplier::build() {
  const AttentionTiles &tiles = kernel.tiles;
  Value zero = b.i32(0);
  b.loop(tiles.getFirst(), tiles.getCount(), tiles.getStride(),
         SmallVector<Value>(6, zero), [&](Value item, ValueRange carried) {
           AttentionTile tile = tiles.getTile(item);
           Value phaseOfQ = carried[5];
           State state = State::unpack(carried);
           begin({zero, phaseOfQ}, state);
           Value count = b.sub(tile.end, tile.begin);
           state = State::unpack(
               b.loop(b.i32(1), count, b.i32(1), state.pack(),
                      [&](Value i, ValueRange carried) {
                        State state = State::unpack(carried);
                        step(/*accumulates=*/b.less(b.i32(1), i), state);
                        return state.pack();
                      }));
           finish(/*accumulates=*/b.less(b.i32(1), count), state);
           SmallVector<Value> next = state.pack();
           next.push_back(b.bitXor(phaseOfQ, b.i32(1)));
           return next;
         });
}

void sm100::buildAttentionMultiplier(const AttentionContext &kernel) {
  AttentionMultiplier(kernel).build();
}
