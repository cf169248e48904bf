//===- Ring.cpp - Ring of shared memory stages between warps --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ring.h"

using namespace mlir;
using namespace mlir::fp8;

/// An mbarrier object.
static constexpr int64_t kBarrierBytes = 8;

void Ring::initialize(Value fullArrivals, int64_t emptyArrivals) {
  Value ofAllBlocks = b.mul(getNumFilled(), emptyArrivals);
  for (int64_t stage = 0; stage < stages; ++stage) {
    NVVM::MBarrierInitOp::create(b, getFullBarrier(b.i32(stage)), fullArrivals,
                                 /*predicate=*/Value());
    NVVM::MBarrierInitOp::create(b, getEmptyBarrier(b.i32(stage)), ofAllBlocks,
                                 /*predicate=*/Value());
  }
  // Bulk copies see the barriers through the async proxy.
  NVVM::FenceMbarrierInitOp::create(b);
}

Value Ring::getFullBarrier(Value stage) {
  return b.offset(base, b.add(b.mul(stage, kBarrierBytes), barrierOffset));
}

Value Ring::getEmptyBarrier(Value stage) {
  return b.offset(base, b.add(b.mul(stage, kBarrierBytes),
                              barrierOffset + stages * kBarrierBytes));
}

void Ring::waitFull(RingPosition position) {
  wait(getFullBarrier(position.stage), position.phase);
}

Value Ring::isFull(RingPosition position) {
  // Not try_wait, which suspends a thread that has other things to do.
  return NVVM::MBarrierTestWaitOp::create(
      b, b.getI1Type(), getFullBarrier(position.stage), position.phase);
}

void Ring::waitFull(RingPosition position, Value ready) {
  b.ifThen(b.bitXor(ready, b.i1(true)), [&] { waitFull(position); });
}

void Ring::waitEmpty(RingPosition position) {
  wait(getEmptyBarrier(position.stage), position.phase);
}

void Ring::wait(Value barrier, Value phase) {
  // try_wait suspends the thread for a while by itself: no back-off needed.
  scf::WhileOp::create(
      b, TypeRange(), ValueRange(),
      [&](OpBuilder &, Location, ValueRange) {
        Value done =
            NVVM::MBarrierTryWaitOp::create(b, b.getI1Type(), barrier, phase,
                                            /*ticks=*/Value());
        scf::ConditionOp::create(b, b.bitXor(done, b.i1(true)), ValueRange());
      },
      [&](OpBuilder &, Location, ValueRange) { scf::YieldOp::create(b); });
}

void Ring::expectBytes(Value stage, Value bytes) {
  NVVM::MBarrierArriveExpectTxOp::create(
      b, /*res=*/Type(), getFullBarrier(stage), bytes, NVVM::MemScopeKind::CTA,
      /*relaxed=*/false, /*predicate=*/Value());
}

Value Ring::getNeighbour(Value i) {
  if (cluster.cols == 1)
    return i;
  // Those that share the columns, then the others that share the rows.
  Value ofRows = b.add(i, b.mul(cluster.rankOfCols, cluster.rows));
  Value other = b.sub(i, b.i32(cluster.rows));
  Value comesBefore = b.less(other, cluster.rankOfCols);
  other = b.select(comesBefore, other, b.add(other, 1));
  Value ofCols = b.mul(other, cluster.rows);
  if (cluster.rows > 1)
    ofCols = b.add(ofCols, cluster.rankOfRows);
  return b.select(b.less(i, b.i32(cluster.rows)), ofRows, ofCols);
}

Value Ring::isFilledBy(Value i) {
  Value fills = b.less(i, b.i32(cluster.getNeighbours()));
  if (!cluster.wholeRows && !cluster.wholeCols)
    return fills;
  Value first = b.i32(0), rows = b.i32(cluster.rows);
  // Those before `rows` share the columns; this one is among them.
  Value sharesCols = b.less(i, rows);
  Value fillsCols = sharesCols;
  if (cluster.wholeCols && cluster.rows > 1)
    fillsCols =
        b.select(b.equal(i, first), b.i1(true), b.equal(i, cluster.rankOfRows));
  if (cluster.cols == 1)
    return fillsCols;
  Value fillsRows = fills;
  if (cluster.wholeRows)
    fillsRows =
        b.bitAnd(b.equal(i, rows),
                 b.bitXor(b.equal(cluster.rankOfCols, first), b.i1(true)));
  return b.select(sharesCols, fillsCols, fillsRows);
}

Value Ring::getNumFilled() {
  auto getOthers = [&](int64_t blocks, bool whole, Value rank) {
    Value others = b.i32(blocks - 1);
    return whole && blocks > 1 ? b.select(b.equal(rank, 0), others, b.i32(0))
                               : others;
  };
  Value count =
      b.add(getOthers(cluster.rows, cluster.wholeCols, cluster.rankOfRows),
            getOthers(cluster.cols, cluster.wholeRows, cluster.rankOfCols));
  return b.add(count, 1);
}

void Ring::release(Value stage, Value lane) {
  // Lane i arrives in the i-th of the blocks.
  b.ifThen(isFilledBy(lane), [&] {
    Value barrier = getEmptyBarrier(stage);
    if (cluster.getNeighbours() > 1)
      barrier =
          NVVM::MapaOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), 7),
                               barrier, getNeighbour(lane));
    // There are no writes to publish: what the warp has read of the stage is in
    // registers. The scope of a cluster would cost a fence of all of global
    // memory, a third to a half of the kernel's speed; CUTLASS arrives like
    // this too.
    NVVM::MBarrierArriveOp::create(b, /*res=*/Type(), barrier,
                                   /*count=*/Value());
  });
}

RingPosition Ring::advance(RingPosition position) {
  Value next = b.add(position.stage, 1);
  Value wraps = b.equal(next, stages);
  return {b.select(wraps, b.i32(0), next),
          b.select(wraps, b.bitXor(position.phase, b.i32(1)), position.phase)};
}

RingPosition Ring::skip(RingPosition position, Value count) {
  Value distance = b.add(position.stage, count);
  Value rounds = b.div(distance, stages);
  return {b.rem(distance, stages),
          b.bitXor(position.phase, b.bitAnd(rounds, 1))};
}
