//===- AttentionBackwardConsumer.cpp - The warpgroups that multiply -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warpgroup has 64 keys. What a step gives to sums is multiplied in the next
// one, so that the tensor core has work while it is exponentiated, and so that
// the warpgroups need not go in step: each has one whole step's time to leave
// its scores' gradients, G, to the other one's part of dQ.
//
//   S = K Q^T | D = V dO^T;  P = exp2(S - lse);  G = P (D - delta)
//   for steps from the second:
//     dV += P dO | dK += G Q | S = K Q^T;  D = V dO^T
//     P = exp2(S - lse) | dQ = G^T K;  G = P (D - delta);  dQ is added
//   dV += P dO | dK += G Q | dQ = G^T K;  dQ is added;  dK, dV are stored
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardConsumer.h"
#include "../Blocks/BulkCopy.h"
#include "AttentionProducts.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

SmallVector<Value> BackwardState::pack() const {
  SmallVector<Value> values(dk);
  for (const SmallVector<Value> &more : {dv, p, g})
    llvm::append_range(values, more);
  for (RingPosition position : {at, scores, added})
    llvm::append_range(values, ArrayRef{position.stage, position.phase});
  llvm::append_range(values, ArrayRef{step.head, step.tile});
  if (isSeen)
    values.push_back(isSeen);
  return values;
}

BackwardState BackwardState::unpack(ValueRange values) const {
  BackwardState state;
  auto take = [&](size_t count) {
    SmallVector<Value> taken = llvm::to_vector(values.take_front(count));
    values = values.drop_front(count);
    return taken;
  };
  state.dk = take(dk.size());
  state.dv = take(dv.size());
  state.p = take(p.size());
  state.g = take(g.size());
  for (RingPosition *position : {&state.at, &state.scores, &state.added}) {
    SmallVector<Value> pair = take(2);
    *position = {pair[0], pair[1]};
  }
  SmallVector<Value> pair = take(2);
  state.step = {pair[0], pair[1]};
  if (!values.empty())
    state.isSeen = values.front();
  return state;
}

BackwardConsumer::BackwardConsumer(const AttentionBackwardContext &kernel)
    : SoftmaxGradient(kernel.b, kernel.spec), kernel(kernel),
      memory(kernel.memory), tiles(kernel.tiles),
      tileQ(kernel.config.getTileQ()), scoresOf{tileQ, spec.k, spec.q},
      gradsOf{tileQ, spec.grad, spec.grad},
      toV{spec.headDimOfV, spec.grad, spec.grad, /*transposedA=*/false,
          /*transposedB=*/true},
      toK{spec.headDim, spec.grad, spec.grad, /*transposedA=*/false,
          /*transposedB=*/true},
      toQ{tileQ == 64 ? spec.headDim / 2 : spec.headDim, spec.grad, spec.grad,
          /*transposedA=*/true, /*transposedB=*/true},
      group(b.shiftRight(kernel.warp, 2)) {
  loadFactors(kernel.params);
  // Numbers of batches are less than 2^31.
  zero = b.shiftRight(kernel.getParam("batch"), 31);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void BackwardConsumer::add(ArrayRef<Value> sums, BackwardStep step,
                           Value isSeen, RingPosition at) {
  Ring ring = kernel.added;
  // Until the stage has been given back; in the order of sums also for this
  // block's turn, with which it is given.
  ring.waitEmpty({at.stage, spec.isDeterministic
                                ? at.phase
                                : b.bitXor(at.phase, b.i32(1))});
  Value thread = renewInLoop(kernel.thread);
  Value place = kernel.getSums(tiles.getNumber(step), group, b.i32(0),
                               b.bitAnd(thread, 127));
  auto addAll = [&] {
    for (size_t first = 0; first < sums.size(); first += 4) {
      SmallVector<Value> operands{
          b.offset(place, b.i64(static_cast<int64_t>(first) * 128 * 4))};
      llvm::append_range(operands, sums.slice(first, 4));
      b.ptx("red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};",
            operands);
    }
  };
  if (isSeen)
    b.ifThen(b.equal(isSeen, 1), addAll);
  else
    addAll();
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  b.ifThen(b.equal(kernel.lane, 0), [&] {
    NVVM::MBarrierArriveOp::create(b, /*res=*/Type(),
                                   ring.getFullBarrier(at.stage),
                                   /*count=*/Value());
  });
}

void BackwardConsumer::store(ArrayRef<Value> sums, Value factor,
                             const SharedMatrix &matrix, int64_t offset,
                             StringRef map) {
  SmallVector<Value> scaled(sums);
  for (Value &sum : scaled)
    if (factor)
      sum = b.mulF(sum, factor);
  storeFragment(b, packFragment(b, spec.grad, scaled), matrix, kernel.shared,
                b.i32(offset), b.mul(b.shiftRight(kernel.thread, 5), 16),
                kernel.lane);
  fenceForBulkCopies(b);
  b.namedBarrier(b.add(group, 1), 128);
  Value firstRow = b.mul(group, 64);
  b.ifThen(b.equal(b.bitAnd(kernel.warp, 3), 0), [&] {
    b.electOne([&] {
      for (int64_t box = 0; box < matrix.getBoxes(); ++box) {
        Value from = b.add(b.mul(firstRow, matrix.width),
                           offset + box * matrix.getBoxBytes());
        bulkStore(b, kernel.getParam(map), b.offset(kernel.shared, from),
                  kernel.getCoordinates(b.i32(box * matrix.getBoxColumns()),
                                        b.add(tiles.key, firstRow),
                                        tiles.headOfK, tiles.batch));
      }
      waitForReads(b, 0);
    });
  });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void BackwardConsumer::release(const BackwardState &state) {
  Ring queries = kernel.queries, grads = kernel.grads;
  queries.release(state.at.stage, kernel.lane);
  grads.release(state.at.stage, kernel.lane);
}

BackwardState BackwardConsumer::begin() {
  Ring queries = kernel.queries, grads = kernel.grads, keys = kernel.keys;
  Ring codes = kernel.codesOfQueries, codesOfKeys = kernel.codesOfKeys;
  BackwardState state;
  setDescriptors();
  state.at = state.scores = state.added = {b.i32(0), b.i32(0)};
  state.step = tiles.getFirst();
  SmallVector<Value> dropped = drawDropped(state.step);
  keys.waitFull({b.i32(0), b.i32(0)});
  if (memory.hasCodes()) {
    codesOfKeys.waitFull({b.i32(0), b.i32(0)});
    codes.waitFull(state.at);
  } else {
    queries.waitFull(state.at);
  }
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value scores = multiplyScores(state.at.stage);
  keys.waitFull({b.i32(1), b.i32(0)});
  grads.waitFull(state.at);
  Value products = multiplyGrads(state.at.stage);
  SmallVector<Value> ofScores =
      waitForAccumulators(b, /*pending=*/1, getRegisters(b, scores));
  if (memory.hasCodes()) {
    codes.release(state.at.stage, kernel.lane);
    queries.waitFull(state.at);
  }
  SmallVector<Value> slopes;
  state.p = exponentiate(ofScores, state.step, state.at.stage, dropped, slopes);
  state.isSeen = findSeen(state.at.stage);
  SmallVector<Value> ofProducts =
      waitForAccumulators(b, /*pending=*/0, getRegisters(b, products));
  state.g = differentiate(state.p, slopes, ofProducts, state.at.stage);
  if (dropout)
    state.p = renewKept(state.p);
  leave(state.g, state.scores.stage);
  announce(state.scores.stage);
  state.dk.assign(spec.headDim / 2, b.f32(0.0f));
  state.dv.assign(spec.headDimOfV / 2, b.f32(0.0f));
  return state;
}

BackwardState BackwardConsumer::next(BackwardState state) {
  Ring queries = kernel.queries, grads = kernel.grads,
       scoresRing = kernel.scores;
  Ring codes = kernel.codesOfQueries;
  BackwardState after;
  setDescriptors();
  after.at = queries.advance(state.at);
  // Rings of as many stages are at the same one: registers that are one.
  after.scores =
      kernel.config.getStages() == AttentionBackwardMemory::kScoreStages
          ? after.at
          : scoresRing.advance(state.scores);
  after.step = tiles.advance(state.step);
  Value stage = after.at.stage;
  if (memory.hasCodes())
    codes.waitFull(after.at);
  else
    queries.waitFull(after.at);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value dv = addProduct(toV, state.p, memory.grad, ofGradRows, state.at.stage,
                        state.dv);
  Value dk =
      addProduct(toK, state.g, memory.q, ofQRows, state.at.stage, state.dk);
  // While these are computed, and before scores are.
  SmallVector<Value> dropped = drawDropped(after.step);
  if (dropout)
    NVVM::WgmmaFenceAlignedOp::create(b);
  // With 64 columns a tile has 128 queries, and no registers for their scores
  // beside what the sums are made of.
  bool isLate = tileQ == 128;
  Value scores;
  if (!isLate)
    scores = multiplyScores(stage);
  SmallVector<Value> sums = getRegisters(b, dv);
  llvm::append_range(sums, getRegisters(b, dk));
  sums = waitForAccumulators(b, /*pending=*/isLate ? 0 : 1, sums);
  if (isLate) {
    NVVM::WgmmaFenceAlignedOp::create(b);
    scores = multiplyScores(stage);
  }
  after.dv.assign(sums.begin(), sums.begin() + state.dv.size());
  after.dk.assign(sums.begin() + state.dv.size(), sums.end());
  release(state);
  grads.waitFull(after.at);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value products = multiplyGrads(stage);
  SmallVector<Value> ofScores =
      waitForAccumulators(b, /*pending=*/1, getRegisters(b, scores));
  if (memory.hasCodes()) {
    codes.release(stage, kernel.lane);
    queries.waitFull(after.at);
  }
  SmallVector<Value> slopes;
  SmallVector<Value> p =
      exponentiate(ofScores, after.step, stage, dropped, slopes);
  after.isSeen = findSeen(stage);
  // G of the other keys.
  scoresRing.waitEmpty(state.scores);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value dq = multiplyQueries(state.scores.stage);
  SmallVector<Value> ofProducts =
      waitForAccumulators(b, /*pending=*/1, getRegisters(b, products));
  SmallVector<Value> g = differentiate(p, slopes, ofProducts, stage);
  leave(g, after.scores.stage);
  SmallVector<Value> part =
      waitForAccumulators(b, /*pending=*/0, getRegisters(b, dq));
  // Only now, as it says, too, that the stage before has been read.
  announce(after.scores.stage);
  add(part, state.step, state.isSeen, state.added);
  Ring added = kernel.added;
  after.added = added.advance(state.added);
  after.p = dropout ? renewKept(p) : renew(p);
  after.g = renew(g);
  return after;
}

void BackwardConsumer::finish(BackwardState &state) {
  Ring scoresRing = kernel.scores;
  setDescriptors();
  scoresRing.waitEmpty(state.scores);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value dv = addProduct(toV, state.p, memory.grad, ofGradRows, state.at.stage,
                        state.dv);
  Value dk =
      addProduct(toK, state.g, memory.q, ofQRows, state.at.stage, state.dk);
  Value dq = multiplyQueries(state.scores.stage);
  SmallVector<Value> sums = getRegisters(b, dv);
  llvm::append_range(sums, getRegisters(b, dk));
  llvm::append_range(sums, getRegisters(b, dq));
  ArrayRef<Value> all = sums = waitForAccumulators(b, /*pending=*/0, sums);
  state.dv = SmallVector<Value>(all.take_front(state.dv.size()));
  state.dk = SmallVector<Value>(
      all.drop_front(state.dv.size()).take_front(state.dk.size()));
  add(all.drop_front(state.dv.size() + state.dk.size()), state.step,
      state.isSeen, state.added);
}

void BackwardConsumer::build() {
  size_t sumsOfK = spec.headDim / 2;
  SmallVector<Value> sums = b.choose(
      b.equal(tiles.steps, 0),
      [&] {
        return SmallVector<Value>(sumsOfK + spec.headDimOfV / 2, b.f32(0.0f));
      },
      [&] {
        BackwardState state = begin();
        SmallVector<Value> last =
            b.loop(b.i32(1), tiles.steps, b.i32(1), state.pack(),
                   [&](Value, ValueRange carried) {
                     return next(state.unpack(carried)).pack();
                   });
        state = state.unpack(last);
        finish(state);
        SmallVector<Value> sums(state.dk);
        llvm::append_range(sums, state.dv);
        return sums;
      });
  ArrayRef<Value> all = sums;
  Value factorOfK = b.f32(spec.scale);
  if (Value ofQ = kernel.getFactor("q"))
    factorOfK = b.mulF(factorOfK, ofQ);
  // Copies of what nobody has waited for would come after what is written here.
  Ring keys = kernel.keys;
  for (int64_t stage : {0, 1})
    keys.waitFull({b.i32(stage), b.i32(0)});
  // Both have read all keys.
  b.namedBarrier(b.i32(3), 128 * kernel.kConsumers);
  store(all.take_front(sumsOfK), factorOfK, memory.k, memory.offsetK, "dk.map");
  Value ofKept;
  if (dropout)
    ofKept = b.f32(getFactorOfKept(spec.dropThreshold));
  store(all.drop_front(sumsOfK), ofKept, memory.v, memory.offsetV, "dv.map");
}

void sm90::buildAttentionBackwardConsumer(
    const AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  b.ifThen(b.less(b.i32(0), kernel.tiles.keys),
           [&] { BackwardConsumer(kernel).build(); });
}
