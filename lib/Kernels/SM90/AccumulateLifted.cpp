//===- AccumulateLifted.cpp - Sums of what is made in registers -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Packed weights, or codes that lie with rows innermost, are rows of the tensor
// core's M side, whose words are made in registers: those of the next K block
// while the products of one are under way, behind which its own are issued
// before anyone waits.
//
//===----------------------------------------------------------------------===//

#include "Accumulate.h"
#include "LiftFragments.h"
#include "TransposeFragments.h"

#include <utility>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
/// A K block in registers, where it was, and which one of its stage it is.
struct LiftedBlock {
  SmallVector<Value> words;
  RingPosition at;
  int64_t number;
};

/// The sums of all subtiles, while blocks are multiplied one after the other.
class LiftedSums {
public:
  LiftedSums(const MatmulContext &kernel, Ring ring, const Wgmma &wgmma,
             Value slice, Value colsDescriptor)
      : kernel(kernel), b(kernel.b), ring(ring), wgmma(wgmma),
        colsDescriptor(colsDescriptor), subtiles(kernel.config.getSubtiles()),
        blocks(kernel.layout.stageBlocks),
        promotes(kernel.spec.accumulate == Accumulate::Promote),
        inTurn(promotes && !kernel.layout.lift && !kernel.config.getOverlap()) {
    if (kernel.layout.lift)
      lifter.emplace(kernel, slice);
    else
      transposer.emplace(kernel, slice);
  }

  using Sums = SmallVector<Value>;
  /// What is under way, in the accumulators of all subtiles; with promotion the
  /// sums that products are added to, register by register.
  struct State {
    LiftedBlock underWay;
    Sums products;
    SmallVector<Value> totals;
  };
  /// Issues the first block of stage `k` of the tile's K, which is there.
  State begin(RingPosition at, Value k);
  /// Makes the words of the block behind that which is under way, issues its
  /// own products behind these, and gives a stage back that nobody needs any
  /// more. With promotion its own go to `spare`, which becomes the accumulators
  /// that are free then, or wait until these are added. `k` is the number of
  /// its stage.
  void step(State &state, Sums &spare, Value k);
  /// Waits for the last products: the sums' registers, and the position behind
  /// the block.
  SmallVector<Value> finish(State state);
  /// The same of all of a tile's K, where a stage has one block or several.
  SmallVector<Value> addBlocks(const Tile &tile, RingPosition position);
  SmallVector<Value> addStages(const Tile &tile, RingPosition position);

  Sums getUndefined() { return Sums(subtiles, wgmma.getUndefined(b)); }
  /// What a loop carries, and back.
  static SmallVector<Value> join(const State &state);
  State split(ValueRange carried) const;

private:
  /// The words of block `number` of stage `k`, once it is there.
  LiftedBlock lift(RingPosition at, Value k, int64_t number);
  void multiply(const LiftedBlock &block, Sums &sums, bool overwrite);
  /// Waits until no more than `pending` blocks are under way, of which the last
  /// one are not these: their registers.
  SmallVector<Value> settle(const LiftedBlock &block, Sums &products,
                            int64_t pending);
  void promote(ArrayRef<Value> products, SmallVector<Value> &totals);
  /// Gives the block's stage back if that has no other behind it.
  void release(const LiftedBlock &block);

  const MatmulContext &kernel;
  KernelBuilder &b;
  Ring ring;
  Wgmma wgmma;
  /// Whichever makes the words.
  std::optional<FragmentLifter> lifter;
  std::optional<FragmentTransposer> transposer;
  Value colsDescriptor;
  size_t subtiles;
  /// K blocks of a stage.
  int64_t blocks;
  bool promotes;
  /// Whether products of a block are added before the next one's are issued: a
  /// second set of accumulators has no registers.
  bool inTurn;
};
} // namespace

LiftedBlock LiftedSums::lift(RingPosition at, Value k, int64_t number) {
  if (number == 0)
    ring.waitFull(at);
  Value block = b.add(b.mul(k, blocks), number);
  SmallVector<Value> words;
  for (size_t subtile = 0; subtile < subtiles; ++subtile)
    words.append(lifter ? lifter->lift(at.stage, block, number, subtile)
                        : transposer->load(at.stage, subtile));
  return {pinHere(b, words), at, number};
}

void LiftedSums::multiply(const LiftedBlock &block, Sums &sums,
                          bool overwrite) {
  int64_t ofBlock = kernel.layout.cols.getBytes();
  Value cols = Wgmma::advance(
      b, colsDescriptor,
      b.add(b.mul(block.at.stage, blocks * ofBlock), block.number * ofBlock));
  NVVM::WgmmaFenceAlignedOp::create(b);
  for (auto [subtile, sum] : llvm::enumerate(sums))
    sum = wgmma.multiplyFragments(
        b,
        ArrayRef(block.words)
            .slice(subtile * FragmentLifter::kWords, FragmentLifter::kWords),
        cols, sum, b.i32(overwrite ? 0 : 1));
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
}

SmallVector<Value> LiftedSums::settle(const LiftedBlock &block, Sums &products,
                                      int64_t pending) {
  SmallVector<Value> tied;
  for (Value product : products)
    tied.append(wgmma.getRegisters(b, product));
  size_t count = tied.size();
  // What instructions read must stay until they are done, too.
  tied.append(block.words);
  tied = waitForAccumulators(b, pending, tied);
  tied.truncate(count);
  int64_t registers = wgmma.getNumRegisters();
  for (auto [subtile, product] : llvm::enumerate(products))
    product = wgmma.getAccumulator(
        b, ArrayRef(tied).slice(subtile * registers, registers));
  return tied;
}

void LiftedSums::promote(ArrayRef<Value> products, SmallVector<Value> &totals) {
  for (auto [total, product] : llvm::zip_equal(totals, products))
    total = arith::AddFOp::create(b, product, total);
  totals = pinHere(b, totals);
}

void LiftedSums::release(const LiftedBlock &block) {
  if (block.number + 1 < blocks)
    return;
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  ring.release(block.at.stage, kernel.lane);
}

LiftedSums::State LiftedSums::begin(RingPosition at, Value k) {
  State state{lift(at, k, /*number=*/0), getUndefined(), {}};
  multiply(state.underWay, state.products, /*overwrite=*/true);
  if (promotes)
    state.totals.assign(subtiles * wgmma.getNumRegisters(), b.f32(0.0f));
  return state;
}

void LiftedSums::step(State &state, Sums &spare, Value k) {
  LiftedBlock before = state.underWay;
  bool isNext = before.number + 1 == blocks;
  state.underWay = isNext
                       ? lift(advance(b, ring, kernel.config, before.at), k, 0)
                       : lift(before.at, k, before.number + 1);
  if (!promotes) {
    multiply(state.underWay, state.products, /*overwrite=*/false);
    Sums none;
    settle(before, none, /*pending=*/1);
    return release(before);
  }
  if (inTurn) {
    SmallVector<Value> terms = settle(before, state.products, /*pending=*/0);
    release(before);
    promote(terms, state.totals);
    return multiply(state.underWay, state.products, /*overwrite=*/true);
  }
  multiply(state.underWay, spare, /*overwrite=*/true);
  std::swap(state.products, spare);
  SmallVector<Value> terms = settle(before, spare, /*pending=*/1);
  release(before);
  promote(terms, state.totals);
}

SmallVector<Value> LiftedSums::finish(State state) {
  SmallVector<Value> sums =
      settle(state.underWay, state.products, /*pending=*/0);
  release(state.underWay);
  if (promotes) {
    promote(sums, state.totals);
    sums = state.totals;
  }
  if (float scale = lifter ? lifter->getScale() : 1; scale != 1)
    for (Value &sum : sums)
      sum = b.mulF(sum, b.f32(scale));
  RingPosition after = advance(b, ring, kernel.config, state.underWay.at);
  sums.append({after.stage, after.phase});
  return sums;
}

SmallVector<Value> LiftedSums::join(const State &state) {
  SmallVector<Value> all(state.underWay.words);
  all.append(state.products.begin(), state.products.end());
  all.append(state.totals.begin(), state.totals.end());
  all.append({state.underWay.at.stage, state.underWay.at.phase});
  return all;
}

LiftedSums::State LiftedSums::split(ValueRange carried) const {
  size_t words = subtiles * FragmentLifter::kWords;
  RingPosition at{carried[carried.size() - 2], carried.back()};
  ValueRange totals = carried.drop_back(2).drop_front(words + subtiles);
  return {LiftedBlock{SmallVector<Value>(carried.take_front(words)), at,
                      blocks - 1},
          Sums(carried.slice(words, subtiles)), SmallVector<Value>(totals)};
}

SmallVector<Value> LiftedSums::addBlocks(const Tile &tile,
                                         RingPosition position) {
  // Two blocks an iteration: what is under way cannot be moved, so that the
  // words of each have registers of their own.
  Value rest = b.sub(b.sub(tile.kEnd, tile.kBegin), b.i32(1));
  SmallVector<Value> carried = b.loop(
      b.i32(0), b.shiftRight(rest, 1), b.i32(1),
      join(begin(position, tile.kBegin)), [&](Value pair, ValueRange carried) {
        State state = split(carried);
        Sums spare = getUndefined();
        Value k = b.add(tile.kBegin, b.mul(pair, 2));
        step(state, spare, b.add(k, 1));
        step(state, spare, b.add(k, 2));
        return join(state);
      });
  State left = split(carried);
  return b.choose(
      b.equal(b.bitAnd(rest, 1), 1),
      [&] {
        State state = left;
        Sums spare = getUndefined();
        step(state, spare, b.sub(tile.kEnd, b.i32(1)));
        return finish(state);
      },
      [&] { return finish(left); });
}

SmallVector<Value> LiftedSums::addStages(const Tile &tile,
                                         RingPosition position) {
  // An even number of blocks, as above.
  State first = begin(position, tile.kBegin);
  Sums firstSpare = getUndefined();
  for (int64_t block = 1; block < blocks; ++block)
    step(first, firstSpare, tile.kBegin);
  SmallVector<Value> carried =
      b.loop(b.add(tile.kBegin, 1), tile.kEnd, b.i32(1), join(first),
             [&](Value k, ValueRange carried) {
               State state = split(carried);
               Sums spare = getUndefined();
               for (int64_t block = 0; block < blocks; ++block)
                 step(state, spare, k);
               return join(state);
             });
  return finish(split(carried));
}

SmallVector<SmallVector<Value>>
Accumulator::accumulateLifted(const Tile &tile, RingPosition &position,
                              llvm::function_ref<void()> issued) {
  LiftedSums products(kernel, ring, wgmma, slice, colsDescriptor);
  SmallVector<Value> final = layout.stageBlocks > 1
                                 ? products.addStages(tile, position)
                                 : products.addBlocks(tile, position);
  issued();
  position = {*(final.end() - 2), final.back()};
  SmallVector<SmallVector<Value>> all;
  int64_t registers = wgmma.getNumRegisters();
  for (int64_t subtile = 0; subtile < config.getSubtiles(); ++subtile)
    all.emplace_back(ArrayRef(final).slice(subtile * registers, registers));
  return all;
}
