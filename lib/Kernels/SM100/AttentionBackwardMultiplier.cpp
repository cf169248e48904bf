//===- AttentionBackwardMultiplier.cpp - What multiplies ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A thread's products take place in their order, so that the next scores go
// where P is, and the next products of V where a part of dQ was:
//
//   S = K Q[0]; D = V dO[0]
//   for further steps:  dV += P dO;  S = K Q;  dK += G Q;  dQ = G^T K;  D = V
//   dO dV += P dO;  dK += G Q;  dQ = G^T K
//
// While scores are exponentiated, the tensor core has dK and dQ of the step
// before. Ted Zadouri and others, "FlashAttention-4" (2026), have the order.
//
//===----------------------------------------------------------------------===//

#include "../Blocks/Hazards.h"
#include "AttentionBackwardContext.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

namespace {
class BackwardMultiplier {
public:
  explicit BackwardMultiplier(const AttentionBackwardContext &kernel)
      : kernel(kernel), b(kernel.b), memory(kernel.memory),
        queries(kernel.queries), grads(kernel.grads), scores(kernel.scores),
        products(kernel.products), parts(kernel.parts), sums(kernel.sums),
        dim(kernel.spec.headDim) {}
  void build();

private:
  /// Positions of a step in the rings of queries, and the phase of those with
  /// one stage.
  struct State {
    RingPosition at;
    Value phase;
  };

  /// Descriptors (i64) of a matrix with columns as K, or rows.
  Value describe(const SwizzledMatrix &matrix, int64_t offset, Value stage,
                 bool byRows);
  /// The product of a block's keys and a step's rows, in `column` on.
  void multiplyRows(const SwizzledMatrix &a, int64_t offsetA,
                    const SwizzledMatrix &other, int64_t offset, Value stage,
                    int64_t column);
  void addV(const State &state, Value accumulates);
  void addK(const State &state, Value accumulates);
  void multiplyPart();
  void commit(Value barrier) {
    NVVM::Tcgen05CommitOp::create(b, barrier, /*multicastMask=*/Value());
  }
  void step(State &state, Value accumulates);
  void finish(const State &state, Value accumulates);

  const AttentionBackwardContext &kernel;
  KernelBuilder &b;
  const AttentionBackwardMemory &memory;
  Ring queries, grads, scores, products, parts, sums;
  int64_t dim;
};
} // namespace

Value BackwardMultiplier::describe(const SwizzledMatrix &matrix, int64_t offset,
                                   Value stage, bool byRows) {
  Value place = b.i32(offset);
  if (stage)
    place = kernel.getPlace(matrix, offset, launder(b, stage));
  return makeDescriptor(b, b.add(kernel.base, place),
                        byRows ? matrix.getBoxBytes() : 16,
                        /*strideOffset=*/8 * matrix.width, matrix.width);
}

void BackwardMultiplier::multiplyRows(const SwizzledMatrix &a, int64_t offsetA,
                                      const SwizzledMatrix &other,
                                      int64_t offset, Value stage,
                                      int64_t column) {
  Tcgen05Instruction product{a.elementType, other.elementType,
                             /*transposedB=*/false, kernel.tileQ};
  Value ofA = describe(a, offsetA, Value(), /*byRows=*/false);
  Value ofB = describe(other, offset, stage, /*byRows=*/false);
  for (int64_t i = 0, e = a.rowBytes / 32; i < e; ++i)
    product.multiply(b, b.add(kernel.columns, column),
                     advanceBy(b, ofA, a.getStepBytes(i)),
                     advanceBy(b, ofB, other.getStepBytes(i)),
                     /*accumulates=*/b.i1(i != 0));
}

void BackwardMultiplier::addV(const State &state, Value accumulates) {
  const SwizzledMatrix &grad = memory.grad;
  Tcgen05Instruction product{grad.elementType, grad.elementType,
                             /*transposedB=*/true, dim};
  scores.waitEmpty({b.i32(0), state.phase});
  fenceAfterSync(b);
  Value ofB =
      describe(grad, memory.offsetGrad, state.at.stage, /*byRows=*/true);
  // P of either half of the queries is over the first of its scores: 16
  // queries are eight columns.
  for (int64_t i = 0; i < kernel.tileQ / 16; ++i)
    product.multiply(b, b.add(kernel.columns, memory.columnOfV),
                     b.add(kernel.columns, i / 4 * 64 + i % 4 * 8),
                     advanceBy(b, ofB, i * 16 * grad.width),
                     i == 0 ? accumulates : b.i1(true));
}

void BackwardMultiplier::addK(const State &state, Value accumulates) {
  const SwizzledMatrix &q = memory.q, &g = memory.scores;
  Tcgen05Instruction product{g.elementType, q.elementType, /*transposedB=*/true,
                             dim};
  products.waitEmpty({b.i32(0), state.phase});
  fenceAfterSync(b);
  Value ofA = describe(g, memory.offsetScores, Value(), /*byRows=*/false);
  Value ofB = describe(q, memory.offsetQ, state.at.stage, /*byRows=*/true);
  for (int64_t i = 0; i < kernel.tileQ / 16; ++i)
    product.multiply(b, b.add(kernel.columns, memory.columnOfK),
                     advanceBy(b, ofA, g.getStepBytes(i)),
                     advanceBy(b, ofB, i * 16 * q.width),
                     i == 0 ? accumulates : b.i1(true));
}

void BackwardMultiplier::multiplyPart() {
  const SwizzledMatrix &k = memory.k, &g = memory.scores;
  Tcgen05Instruction product{g.elementType, k.elementType, /*transposedB=*/true,
                             dim, /*transposedA=*/true};
  Value ofA = describe(g, memory.offsetScores, Value(), /*byRows=*/true);
  Value ofB = describe(k, memory.offsetK, Value(), /*byRows=*/true);
  for (int64_t i = 0; i < kernel.tileK / 16; ++i)
    product.multiply(b, b.add(kernel.columns, memory.columnOfProducts),
                     advanceBy(b, ofA, i * 16 * g.width),
                     advanceBy(b, ofB, i * 16 * k.width),
                     /*accumulates=*/b.i1(i != 0));
  commit(parts.getFullBarrier(b.i32(0)));
}

void BackwardMultiplier::step(State &state, Value accumulates) {
  State next{queries.advance(state.at), b.bitXor(state.phase, b.i32(1))};
  Value zero = b.i32(0);
  queries.waitFull(next.at);
  b.electOne([&] {
    addV(state, accumulates);
    multiplyRows(memory.k, memory.offsetK, memory.q, memory.offsetQ,
                 next.at.stage, /*column=*/0);
    commit(scores.getFullBarrier(zero));
    addK(state, accumulates);
    multiplyPart();
    commit(queries.getEmptyBarrier(state.at.stage));
    commit(grads.getEmptyBarrier(state.at.stage));
  });
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  grads.waitFull(next.at);
  b.electOne([&] {
    parts.waitEmpty({zero, state.phase});
    fenceAfterSync(b);
    multiplyRows(memory.v, memory.offsetV, memory.grad, memory.offsetGrad,
                 next.at.stage, memory.columnOfProducts);
    commit(products.getFullBarrier(zero));
  });
  state = next;
}

void BackwardMultiplier::finish(const State &state, Value accumulates) {
  b.electOne([&] {
    addV(state, accumulates);
    addK(state, accumulates);
    multiplyPart();
    commit(sums.getFullBarrier(b.i32(0)));
  });
}

void BackwardMultiplier::build() {
  Ring keys = kernel.keys;
  Value zero = b.i32(0), steps = kernel.tiles.steps;
  b.ifThen(b.less(zero, steps), [&] {
    RingPosition first{zero, zero};
    keys.waitFull({zero, zero});
    queries.waitFull(first);
    b.electOne([&] {
      multiplyRows(memory.k, memory.offsetK, memory.q, memory.offsetQ, zero,
                   /*column=*/0);
      commit(scores.getFullBarrier(zero));
    });
    keys.waitFull({b.i32(1), zero});
    grads.waitFull(first);
    b.electOne([&] {
      multiplyRows(memory.v, memory.offsetV, memory.grad, memory.offsetGrad,
                   zero, memory.columnOfProducts);
      commit(products.getFullBarrier(zero));
    });
    SmallVector<Value> last =
        b.loop(b.i32(1), steps, b.i32(1), {zero, zero, zero},
               [&](Value i, ValueRange carried) -> SmallVector<Value> {
                 State state{{carried[0], carried[1]}, carried[2]};
                 step(state, /*accumulates=*/b.less(b.i32(1), i));
                 return {state.at.stage, state.at.phase, state.phase};
               });
    finish({{last[0], last[1]}, last[2]},
           /*accumulates=*/b.less(b.i32(1), steps));
  });
}

void sm100::buildBackwardMultiplier(const AttentionBackwardContext &kernel) {
  BackwardMultiplier(kernel).build();
}
