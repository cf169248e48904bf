//===- AttentionBackwardTurns.cpp - Who adds to dQ, and when --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardTurns.h"

using namespace mlir;
using namespace mlir::fp8;

void AttentionBackwardTurns::clearUnseen() {
  // Those that see no key, shared out to the blocks of their keys' head.
  Value end = tiles.tilesOfHead;
  if (!spec.left && !spec.right && !spec.hasKeyRanges)
    end = b.select(b.equal(tiles.keys, 0), end, b.i32(0));
  b.loop(tiles.number, end, tiles.numbers, ValueRange(),
         [&](Value tile, ValueRange) -> SmallVector<Value> {
           b.ifThen(b.equal(tiles.countBlocks(tiles.getKeysOf(tile)), 0), [&] {
             Value first = tiles.getFirst().head;
             b.loop(first, b.add(first, spec.heads / spec.headsOfK), b.i32(1),
                    ValueRange(),
                    [&](Value head, ValueRange) -> SmallVector<Value> {
                      BackwardStep step{head, tile};
                      clearTile(step, tiles.getNumber(step));
                      return {};
                    });
           });
           return {};
         });
}

void AttentionBackwardTurns::waitForTurn(BackwardStep step, RingPosition at,
                                         std::optional<BackwardKeys> known) {
  Value counter = getCounter(tiles.getNumber(step));
  BackwardKeys keys = known ? *known : tiles.getKeysOf(step.tile);
  Value before = tiles.countBlocksBefore(keys);
  ifSeen(keys, [&] {
    b.ifThen(b.equal(block.lane, 0), [&] {
      scf::WhileOp::create(
          b, TypeRange(), ValueRange(),
          [&](OpBuilder &, Location, ValueRange) {
            auto count = LLVM::LoadOp::create(
                b, b.getI32Type(), counter, /*alignment=*/4,
                /*isVolatile=*/false, /*isNonTemporal=*/false,
                /*isInvariant=*/false, /*isInvariantGroup=*/false,
                LLVM::AtomicOrdering::acquire, "device");
            scf::ConditionOp::create(
                b, b.bitXor(b.equal(count, before), b.i1(true)), ValueRange());
          },
          [&](OpBuilder &, Location, ValueRange) { scf::YieldOp::create(b); });
    });
  });
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  // Who waits for the stage knows then what the blocks before have added.
  added.release(at.stage, block.lane);
}

void AttentionBackwardTurns::count(Value number, Value before, Value isLast) {
  // Zero with the last one: ready for the next launch. Nobody else counts at
  // this tile until it is written.
  Value count = b.select(isLast, b.i32(0), b.add(before, 1));
  LLVM::StoreOp::create(b, count, getCounter(number), /*alignment=*/4,
                        /*isVolatile=*/false, /*isNonTemporal=*/false,
                        /*isInvariantGroup=*/false,
                        LLVM::AtomicOrdering::monotonic, "device");
}

void AttentionBackwardTurns::endInOrder() {
  auto skip = [&](BackwardStep step, RingPosition at, int64_t count) {
    for (; count > 0; --count) {
      step = tiles.advance(step);
      at = added.advance(at);
    }
    return std::make_pair(step, at);
  };
  // Waits for the turn of the next step, if there is one (i1), and returns the
  // keys of its queries: loaded once, and a step ahead, where they are ranges.
  auto prepare = [&](Value isThere, BackwardStep step,
                     RingPosition at) -> SmallVector<Value> {
    if (!spec.hasKeyRanges) {
      b.ifThen(isThere, [&] { waitForTurn(step, at); });
      return {};
    }
    return b.choose(
        isThere,
        [&]() -> SmallVector<Value> {
          BackwardKeys keys = tiles.getKeysOf(step.tile);
          waitForTurn(step, at, keys);
          return {keys.begin, keys.end};
        },
        [&]() -> SmallVector<Value> { return {b.i32(0), b.i32(0)}; });
  };
  auto end = [&](Value i, BackwardStep step, RingPosition at,
                 ValueRange ranges) -> SmallVector<Value> {
    added.waitFull(at);
    Value number = tiles.getNumber(step);
    auto keys = [&] {
      return ranges.empty() ? tiles.getKeysOf(step.tile)
                            : BackwardKeys{ranges[0], ranges[1]};
    };
    Value before = tiles.countBlocksBefore(keys());
    Value isLast = b.equal(b.add(before, 1), tiles.countBlocks(keys()));
    // Shows what the block's warps have added, too: they have said so.
    fence();
    ifSeen(keys(), [&] {
      b.ifThen(b.equal(block.lane, 0), [&] { count(number, before, isLast); });
    });
    auto [next, nextAt] = skip(step, at, enders);
    SmallVector<Value> ofNext =
        prepare(b.less(b.add(i, enders), tiles.steps), next, nextAt);
    ifSeen(keys(), [&] { b.ifThen(isLast, [&] { storeTile(step, number); }); });
    SmallVector<Value> carried{next.head, next.tile, nextAt.stage,
                               nextAt.phase};
    llvm::append_range(carried, ofNext);
    return carried;
  };
  auto [first, firstAt] = skip(tiles.getFirst(), {b.i32(0), b.i32(0)}, part);
  SmallVector<Value> initial =
      prepare(b.less(b.i32(part), tiles.steps), first, firstAt);
  initial.insert(initial.begin(),
                 {first.head, first.tile, firstAt.stage, firstAt.phase});
  b.loop(b.i32(part), tiles.steps, b.i32(enders), initial,
         [&](Value i, ValueRange carried) {
           return end(i, {carried[0], carried[1]}, {carried[2], carried[3]},
                      carried.drop_front(4));
         });
}
