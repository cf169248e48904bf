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

#include "../Attention/AttentionBackwardTurns.h"
#include "../Blocks/Rounding.h"
#include "AttentionBackwardContext.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
/// A warp that ends tiles, number `part` of these.
class BackwardEnder : public AttentionBackwardTurns {
public:
  BackwardEnder(const AttentionBackwardContext &kernel, int64_t part)
      : AttentionBackwardTurns(kernel, kernel.added, part,
                               kernel.memory.getEnders()),
        kernel(kernel), memory(kernel.memory), tileQ(kernel.tileQ) {}

  void build();

private:
  /// Counts this block at a tile that it has added to; whether all have (i1).
  Value arrive(Value number, Value last);
  void endAsTheyCome();

  /// The result's rows of a tile that all have added to, whose sums become
  /// zeros again; or zeros.
  void storeTile(BackwardStep step, Value number) override;
  /// Their sums are zeros.
  void clearTile(BackwardStep step, Value number) override {
    storeTile(step, number);
  }
  void copySums(Value number, Value place);
  void storeRow(BackwardStep step, Value row, Value column, Value word);

  const AttentionBackwardContext &kernel;
  const AttentionBackwardMemory &memory;
  int64_t tileQ;
};
} // namespace

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void BackwardEnder::storeRow(BackwardStep step, Value row, Value column,
                             Value word) {
  Value query = b.add(b.mul(step.tile, tileQ), row);
  b.ifThen(b.less(query, tiles.queries),
           [&] { b.store(word, getResult(step, query, column)); });
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
