//===- AccumulateLifted.cpp - Sums of weights lifted in registers ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Packed weights are rows of the tensor core's M side, whose words are made in
// registers: those of the next K block while the products of one are under way.
//
//===----------------------------------------------------------------------===//

#include "Accumulate.h"
#include "LiftFragments.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
/// A K block in registers, and where it was.
struct LiftedBlock {
  SmallVector<Value> words;
  RingPosition at;
};

/// The sums of all subtiles, while blocks are multiplied one after the other.
class LiftedSums {
public:
  LiftedSums(const MatmulContext &kernel, Ring ring, const Wgmma &wgmma,
             Value slice, Value colsDescriptor)
      : kernel(kernel), b(kernel.b), ring(ring), wgmma(wgmma),
        lifter(kernel, slice), colsDescriptor(colsDescriptor),
        subtiles(kernel.config.getSubtiles()) {}

  using Sums = SmallVector<Value>;
  Sums getUndefined() { return Sums(subtiles, wgmma.getUndefined(b)); }

  /// The words of block `k`, once it is there.
  LiftedBlock lift(RingPosition at, Value k);
  /// Adds a block's products, or begins with them if `accumulates` (i32) is 0;
  /// makes the words of the next one while they are under way.
  LiftedBlock step(const LiftedBlock &block, Sums &sums, Value accumulates,
                   Value nextK);
  /// The same without a next one: sums, and the position behind the block.
  SmallVector<Value> finish(const LiftedBlock &block, Sums sums,
                            Value accumulates);

  /// What a loop carries, and back.
  static SmallVector<Value> join(const LiftedBlock &block, const Sums &sums,
                                 Value accumulates);
  std::pair<LiftedBlock, Sums> split(ValueRange carried) const;

private:
  void multiply(const LiftedBlock &block, Sums &sums, Value accumulates);
  /// Waits for the products of a block, and gives its stage back.
  void settle(const LiftedBlock &block, Sums &sums);

  const MatmulContext &kernel;
  KernelBuilder &b;
  Ring ring;
  Wgmma wgmma;
  FragmentLifter lifter;
  Value colsDescriptor;
  size_t subtiles;
};
} // namespace

LiftedBlock LiftedSums::lift(RingPosition at, Value k) {
  ring.waitFull(at);
  SmallVector<Value> words;
  for (size_t subtile = 0; subtile < subtiles; ++subtile)
    words.append(lifter.lift(at.stage, k, subtile));
  return {pinHere(b, words), at};
}

void LiftedSums::multiply(const LiftedBlock &block, Sums &sums,
                          Value accumulates) {
  Value cols = Wgmma::advance(
      b, colsDescriptor, b.mul(block.at.stage, kernel.layout.cols.getBytes()));
  NVVM::WgmmaFenceAlignedOp::create(b);
  for (auto [subtile, sum] : llvm::enumerate(sums))
    sum = wgmma.multiplyFragments(
        b,
        ArrayRef(block.words)
            .slice(subtile * FragmentLifter::kWords, FragmentLifter::kWords),
        cols, sum, accumulates);
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
}

void LiftedSums::settle(const LiftedBlock &block, Sums &sums) {
  SmallVector<Value> tied;
  for (Value sum : sums)
    tied.append(wgmma.getRegisters(b, sum));
  // What instructions read must stay until they are done.
  tied.append(block.words);
  tied = waitForAccumulators(b, 0, tied);
  int64_t registers = wgmma.getNumRegisters();
  for (auto [subtile, sum] : llvm::enumerate(sums))
    sum = wgmma.getAccumulator(
        b, ArrayRef(tied).slice(subtile * registers, registers));
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  ring.release(block.at.stage, kernel.lane);
}

LiftedBlock LiftedSums::step(const LiftedBlock &block, Sums &sums,
                             Value accumulates, Value nextK) {
  multiply(block, sums, accumulates);
  LiftedBlock next = lift(ring.advance(block.at), nextK);
  settle(block, sums);
  return next;
}

SmallVector<Value> LiftedSums::finish(const LiftedBlock &block, Sums sums,
                                      Value accumulates) {
  multiply(block, sums, accumulates);
  settle(block, sums);
  RingPosition after = ring.advance(block.at);
  sums.append({after.stage, after.phase});
  return sums;
}

SmallVector<Value> LiftedSums::join(const LiftedBlock &block, const Sums &sums,
                                    Value accumulates) {
  SmallVector<Value> all(block.words);
  all.append(sums.begin(), sums.end());
  all.append({block.at.stage, block.at.phase, accumulates});
  return all;
}

std::pair<LiftedBlock, LiftedSums::Sums>
LiftedSums::split(ValueRange carried) const {
  size_t words = subtiles * FragmentLifter::kWords;
  ValueRange rest = carried.drop_front(words + subtiles);
  return {LiftedBlock{SmallVector<Value>(carried.take_front(words)),
                      RingPosition{rest[0], rest[1]}},
          Sums(carried.slice(words, subtiles))};
}

SmallVector<SmallVector<Value>>
Accumulator::accumulateLifted(const Tile &tile, RingPosition &position,
                              llvm::function_ref<void()> issued) {
  LiftedSums products(kernel, ring, wgmma, slice, colsDescriptor);
  // Two blocks an iteration: what is in flight cannot be moved, so that the
  // words of each have registers of their own.
  Value rest = b.sub(b.sub(tile.kEnd, tile.kBegin), b.i32(1));
  SmallVector<Value> carried =
      b.loop(b.i32(0), b.shiftRight(rest, 1), b.i32(1),
             LiftedSums::join(products.lift(position, tile.kBegin),
                              products.getUndefined(), b.i32(0)),
             [&](Value pair, ValueRange carried) {
               auto [even, sums] = products.split(carried);
               Value k = b.add(tile.kBegin, b.mul(pair, 2));
               LiftedBlock odd =
                   products.step(even, sums, carried.back(), b.add(k, 1));
               LiftedBlock next =
                   products.step(odd, sums, b.i32(1), b.add(k, 2));
               return LiftedSums::join(next, sums, b.i32(1));
             });
  std::pair<LiftedBlock, LiftedSums::Sums> left = products.split(carried);
  Value isLater = carried.back();
  SmallVector<Value> final = b.choose(
      b.equal(b.bitAnd(rest, 1), 1),
      [&] {
        LiftedSums::Sums sums = left.second;
        LiftedBlock next = products.step(left.first, sums, isLater,
                                         b.sub(tile.kEnd, b.i32(1)));
        return products.finish(next, sums, b.i32(1));
      },
      [&] { return products.finish(left.first, left.second, isLater); });
  issued();
  position = {*(final.end() - 2), final.back()};
  SmallVector<SmallVector<Value>> all;
  for (Value sum : ArrayRef(final).drop_back(2))
    all.push_back(wgmma.getRegisters(b, sum));
  return all;
}
