//===- AttentionBackwardEnds.cpp - Who adds to dQ when, and its ends ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Warps that multiply add a step's part of dQ to the sums of its tile, and say
// so by a stage of `added`. Here it is counted how many blocks have; the last
// one's warp makes the result of the sums.
//
// Where sums have an order the count says, too, whose turn it is: a warp waits
// for its block's before it gives the stage to those that multiply. It does so
// a step of its own ahead, when it has told the next block of the one before:
// nobody waits for a block that itself waits for something else.
//
//===----------------------------------------------------------------------===//

#include "../Blocks/Rounding.h"
#include "AttentionBackwardContext.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
/// A warp that ends tiles, number `part` of these.
class BackwardEnder {
public:
  BackwardEnder(const AttentionBackwardContext &kernel, int64_t part)
      : kernel(kernel), b(kernel.b), spec(kernel.spec), memory(kernel.memory),
        tiles(kernel.tiles), tileQ(kernel.config.getTileQ()), part(part) {}

  void build();

private:
  /// Where queries see some of the keys: without ranges those of all steps do.
  void ifSeen(BackwardKeys keys, llvm::function_ref<void()> body) {
    if (spec.hasKeyRanges)
      b.ifThen(tiles.sees(keys), body);
    else
      body();
  }
  /// Counts this block at a tile that it has added to; whether all have (i1).
  Value arrive(Value number, Value last);
  void endAsTheyCome();
  /// Lets those that multiply add, once all blocks before this one have; the
  /// keys of the step's queries may be known.
  void waitForTurn(BackwardStep step, RingPosition at,
                   std::optional<BackwardKeys> known = std::nullopt);
  /// Counts this block, too, at a tile that those `before` it have added to.
  void count(Value number, Value before, Value isLast);
  void endInOrder();

  /// The result's rows of a tile that all have added to, whose sums become
  /// zeros again; or zeros.
  void storeTile(BackwardStep step, Value number);
  void copySums(Value number, Value place);
  void storeRow(BackwardStep step, Value row, Value column, Value word);
  void clearUnseen();
  /// For all blocks.
  void fence() {
    LLVM::FenceOp::create(b, LLVM::AtomicOrdering::acq_rel, "device");
  }
  Value getCounter(Value number) {
    return b.element(kernel.getParam("counters.ptr"), b.widen(number),
                     b.getI32Type());
  }

  const AttentionBackwardContext &kernel;
  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  const AttentionBackwardMemory &memory;
  const AttentionBackwardTiles &tiles;
  int64_t tileQ, part;
};
} // namespace

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void BackwardEnder::storeRow(BackwardStep step, Value row, Value column,
                             Value word) {
  Value query = b.add(b.mul(step.tile, tileQ), row);
  b.ifThen(b.less(query, tiles.queries), [&] {
    Value index = b.widen(column);
    for (int64_t dim : {0, 1, 2}) {
      Value number = dim == 0                       ? tiles.batch
                     : dim == spec.getSequenceDim() ? query
                                                    : step.head;
      index = b.add(index,
                    b.mul(b.widen(number),
                          kernel.getParam("dq.stride" + std::to_string(dim))));
    }
    b.store(word, b.element(kernel.getParam("dq.ptr"), index, spec.grad));
  });
}

void BackwardEnder::copySums(Value number, Value place) {
  // All at once: they come from far, and a lane has registers for a few. Each
  // copies what it reads.
  int64_t chunks = kernel.getAddedRegisters() / 4;
  b.loop(b.i32(0), b.i32(4 * kernel.kConsumers), b.i32(1), ValueRange(),
         [&](Value warp, ValueRange) -> SmallVector<Value> {
           Value thread = b.add(b.mul(b.bitAnd(warp, 3), 32), kernel.lane);
           Value from =
               kernel.getSums(number, b.shiftRight(warp, 2), b.i32(0), thread);
           Value to = b.offset(place, b.mul(warp, chunks * 512));
           for (int64_t i = 0; i < chunks; ++i)
             NVVM::CpAsyncOp::create(b, b.offset(to, b.i32(i * 512)),
                                     b.offset(from, b.i64(i * 128 * 16)),
                                     /*size=*/16,
                                     NVVM::LoadCacheModifierKind::CG,
                                     /*cpSize=*/Value());
           return {};
         });
  NVVM::CpAsyncCommitGroupOp::create(b);
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
}

void BackwardEnder::storeTile(BackwardStep step, Value number) {
  auto four = VectorType::get({4}, b.getF32Type());
  int64_t chunks = kernel.getAddedRegisters() / 4;
  bool sharesColumns = tileQ == 64;
  Value factor = b.f32(spec.scale);
  if (Value ofK = kernel.getFactor("k"))
    factor = b.mulF(factor, ofK);
  Value place = b.offset(kernel.shared,
                         b.add(b.mul(kernel.lane, 16),
                               memory.offsetSums + part * memory.bytesOfSums));
  copySums(number, place);
  // Warps of the warpgroups that multiply, one after the other.
  b.loop(b.i32(0), b.i32(4 * kernel.kConsumers), b.i32(1), ValueRange(),
         [&](Value warp, ValueRange) -> SmallVector<Value> {
           Value group = b.shiftRight(warp, 2), inGroup = b.bitAnd(warp, 3);
           Value thread = b.add(b.mul(inGroup, 32), kernel.lane);
           Value row = b.add(b.mul(inGroup, 16), b.shiftRight(kernel.lane, 2));
           Value column = b.mul(b.bitAnd(kernel.lane, 3), 2);
           if (sharesColumns)
             column = b.add(column, b.mul(group, spec.headDim / 2));
           else
             row = b.add(row, b.mul(group, 64));
           Value from = b.offset(place, b.mul(warp, chunks * 512));
           Value sums = kernel.getSums(number, group, b.i32(0), thread);
           for (int64_t i = 0; i < chunks; ++i) {
             Value loaded = LLVM::LoadOp::create(
                 b, four, b.offset(from, b.i32(i * 512)), /*alignment=*/16);
             LLVM::StoreOp::create(b, LLVM::ZeroOp::create(b, four),
                                   b.offset(sums, b.i64(i * 128 * 16)),
                                   /*alignment=*/16);
             for (int64_t half : {0, 1}) {
               auto get = [&](int64_t j) {
                 return b.mulF(LLVM::ExtractElementOp::create(
                                   b, loaded, b.i32(2 * half + j)),
                               factor);
               };
               storeRow(step, b.add(row, 8 * half), b.add(column, i * 8),
                        roundPair(b, spec.grad, get(0), get(1)));
             }
           }
           return {};
         });
}

void BackwardEnder::clearUnseen() {
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
                      // Their sums are zeros.
                      storeTile(step, tiles.getNumber(step));
                      return {};
                    });
           });
           return {};
         });
}

//===----------------------------------------------------------------------===//
// Sums as they come
//===----------------------------------------------------------------------===//

Value BackwardEnder::arrive(Value number, Value last) {
  SmallVector<Value> arrived = b.choose(
      b.equal(kernel.lane, 0),
      [&]() -> SmallVector<Value> {
        // Wraps to 0 with the last arrival: ready for the next launch.
        return {LLVM::AtomicRMWOp::create(
            b, LLVM::AtomicBinOp::uinc_wrap, getCounter(number), last,
            LLVM::AtomicOrdering::acq_rel, "device")};
      },
      [&]() -> SmallVector<Value> { return {b.i32(0)}; });
  return b.equal(b.uniform(arrived.front()), last);
}

void BackwardEnder::endAsTheyCome() {
  Ring added = kernel.added;
  auto end = [&](BackwardStep step, RingPosition full) {
    added.waitFull(full);
    fence();
    Value number = tiles.getNumber(step);
    BackwardKeys keys = tiles.getKeysOf(step.tile);
    Value last = b.sub(tiles.countBlocks(keys), b.i32(1));
    ifSeen(keys, [&] {
      b.ifThen(arrive(number, last), [&] {
        fence();
        storeTile(step, number);
      });
    });
    NVVM::SyncWarpOp::create(b, b.i32(-1));
    added.release(full.stage, kernel.lane);
  };
  tiles.forEachStep(
      added, /*phase=*/0, [&](BackwardStep step, RingPosition full) {
        b.ifThen(b.equal(b.rem(full.stage, memory.getEnders()), part),
                 [&] { end(step, full); });
      });
}

//===----------------------------------------------------------------------===//
// Sums in their order
//===----------------------------------------------------------------------===//

void BackwardEnder::waitForTurn(BackwardStep step, RingPosition at,
                                std::optional<BackwardKeys> known) {
  Ring added = kernel.added;
  Value counter = getCounter(tiles.getNumber(step));
  BackwardKeys keys = known ? *known : tiles.getKeysOf(step.tile);
  Value before = tiles.countBlocksBefore(keys);
  ifSeen(keys, [&] {
    b.ifThen(b.equal(kernel.lane, 0), [&] {
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
  added.release(at.stage, kernel.lane);
}

void BackwardEnder::count(Value number, Value before, Value isLast) {
  // Zero with the last one: ready for the next launch. Nobody else counts at
  // this tile until it is written.
  Value count = b.select(isLast, b.i32(0), b.add(before, 1));
  LLVM::StoreOp::create(b, count, getCounter(number), /*alignment=*/4,
                        /*isVolatile=*/false, /*isNonTemporal=*/false,
                        /*isInvariantGroup=*/false,
                        LLVM::AtomicOrdering::monotonic, "device");
}

void BackwardEnder::endInOrder() {
  Ring added = kernel.added;
  int64_t enders = memory.getEnders();
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
      b.ifThen(b.equal(kernel.lane, 0), [&] { count(number, before, isLast); });
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

void BackwardEnder::build() {
  static_assert(AttentionBackwardMemory::kAddStages % 2 == 0);
  if (part == 0)
    clearUnseen();
  if (spec.isDeterministic)
    endInOrder();
  else
    endAsTheyCome();
}

void sm90::buildEndsOfTiles(const AttentionBackwardContext &kernel,
                            int64_t part) {
  BackwardEnder(kernel, part).build();
}
