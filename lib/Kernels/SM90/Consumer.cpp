//===- Consumer.cpp - The warpgroups that multiply and store --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Consumer.h"
#include "../Blocks/SplitK.h"
#include "../Matmul/ClearRows.h"
#include "../Matmul/MatmulStore.h"
#include "Accumulate.h"
#include "TransposeFragments.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
class Consumer {
public:
  Consumer(const MatmulContext &kernel, const TileScheduler &scheduler,
           Ring ring)
      : kernel(kernel), scheduler(scheduler), b(kernel.b), spec(kernel.spec),
        config(kernel.config), layout(kernel.layout), ring(ring),
        group(b.shiftRight(kernel.warp, 2)),
        slice(config.getSharers() == 1 ? b.i32(0) : group),
        barrierId(b.add(group, 1)), accumulator(kernel, ring, slice, group),
        store(kernel, getFragmentLayout(), getBulkShape(),
              {kernel.shared, layout.offsetStaging},
              {group, barrierId, kernel.warp, kernel.lane}),
        splitK(createSplitK()), clusterSplitK(kernel.getClusterSplitK()) {}

  void build();

private:
  /// Which tiles the warpgroup computes, and where in the ring it begins.
  struct Schedule {
    Value first, stride;
    RingPosition position;
  };

  FragmentLayout getFragmentLayout() const {
    int64_t cols = spec.getResultCols(config.getCols());
    return transposesRows(spec, config.getSwapAb())
               ? FragmentLayout::ofNeighbours(cols)
               : FragmentLayout::ofMatrices(cols);
  }
  std::optional<BulkTileStore::Shape> getBulkShape() const {
    if (config.getStore() != GemmStore::TMA)
      return std::nullopt;
    return BulkTileStore::Shape{config.getSubtiles(),
                                layout.storeBytes,
                                spec.resultType.getIntOrFloatBitWidth() / 8,
                                config.getStaging(),
                                config.getSwapAb() ? config.getCols() : 64,
                                config.getSwapAb()};
  }
  std::optional<SplitK> createSplitK() const;
  Schedule getSchedule();
  Tile getTile(Value item) const;
  /// Sums a tile, in turns with the other warpgroup of a ping-pong schedule:
  /// each waits at its own barrier for the other to have issued a whole tile.
  SmallVector<SmallVector<Value>> sumTile(const Tile &tile,
                                          RingPosition &position);
  /// Stores the sums of a tile, or what one block makes of all parts of K.
  /// `phase` changes with each tile.
  void finishTile(const Tile &tile, ArrayRef<SmallVector<Value>> sums,
                  Value phase);
  /// Adds the sums of this block's parts of K, and stores them.
  void addParts(const Tile &tile, ArrayRef<SmallVector<Value>> sums);
  /// Has what the epilogue multiplies and adds on its way while sums are made:
  /// few rows take no longer than a load from memory.
  void prefetchSources(const Tile &tile);
  /// What of the epilogue need not wait for the sums.
  void prepare(const Tile &tile);
  void storeTile(const Tile &tile, ArrayRef<SmallVector<Value>> sums);
  void storeSubtiles(const Tile &tile, ArrayRef<SmallVector<Value>> sums);
  void storeSubtile(const Tile &tile, Value subtile, ValueRange sums);

  /// Registers of a subtile's sums, in each thread.
  int64_t getRegisters() const { return config.getCols() / 2; }

  const MatmulContext &kernel;
  const TileScheduler &scheduler;
  KernelBuilder &b;
  const MatmulSpec &spec;
  GemmConfigAttr config;
  const MatmulLayout &layout;
  Ring ring;
  /// The warpgroup's number, and which slice of the tile it computes.
  Value group, slice, barrierId;
  Accumulator accumulator;
  MatmulStore store;
  std::optional<SplitK> splitK;
  std::optional<ClusterSplitK> clusterSplitK;
};
} // namespace

std::optional<SplitK> Consumer::createSplitK() const {
  if (config.getSplitK() <= 1 || config.getClusterK())
    return std::nullopt;
  return SplitK(b,
                SplitK::Shape{config.getSplitK(), config.getConsumers() * 128,
                              config.getSubtiles() * getRegisters(),
                              config.getBlockParts()},
                kernel.getParam("workspace.ptr"),
                kernel.getParam("counters.ptr"),
                b.offset(kernel.shared, b.i32(layout.offsetBarriers +
                                              16 * config.getStages())),
                b.i32(kAllConsumersBarrier));
}

Consumer::Schedule Consumer::getSchedule() {
  Value first = scheduler.getFirst(), stride = scheduler.getStride();
  RingPosition position{b.i32(0), b.i32(0)};
  if (!kernel.isPingPong())
    return {first, stride, position};
  // The second warpgroup starts one tile later, in the schedule and the ring,
  // and lets the first one begin.
  Value isSecond = b.equal(group, 1);
  RingPosition later = ring.skip(position, scheduler.getKBlocks());
  position = {b.select(isSecond, later.stage, position.stage),
              b.select(isSecond, later.phase, position.phase)};
  first = b.add(first, b.mul(group, stride));
  stride = b.mul(stride, 2);
  b.ifThen(isSecond, [&] { b.namedBarrierArrive(b.i32(kTurnBarrier), 256); });
  return {first, stride, position};
}

Tile Consumer::getTile(Value item) const {
  Tile tile = scheduler.getTile(b, item);
  // What decides about branches.
  if (tile.restK)
    for (Value *value : {&tile.kEnd, &tile.restK})
      *value = b.uniform(*value);
  if (tile.firstK)
    tile.headK = b.uniform(tile.headK);
  if (tile.rowEnd)
    tile.rowEnd = b.uniform(tile.rowEnd);
  return tile;
}

SmallVector<SmallVector<Value>> Consumer::sumTile(const Tile &tile,
                                                  RingPosition &position) {
  if (kernel.isPingPong())
    b.namedBarrier(b.add(group, kTurnBarrier), 256);
  if (config.getSwapAb())
    prefetchSources(tile);
  SmallVector<SmallVector<Value>> sums =
      accumulator.accumulate(tile, position, [&] {
        if (kernel.isPingPong())
          b.namedBarrierArrive(b.sub(b.i32(kTurnBarrier + 1), group), 256);
        if (!splitK && !clusterSplitK)
          prepare(tile);
      });
  if (kernel.isPingPong())
    position = ring.skip(position, scheduler.getKBlocks());
  return sums;
}

void Consumer::addParts(const Tile &tile, ArrayRef<SmallVector<Value>> sums) {
  Type f32 = b.getF32Type();
  int64_t threads = config.getConsumers() * 128;
  Value isFirst = b.equal(group, 0);
  Value own = b.offset(kernel.shared,
                       b.add(b.mul(b.bitAnd(kernel.thread, 127), int64_t(4)),
                             layout.offsetParts));
  auto getPlace = [&](Value part, int64_t i) {
    return b.offset(own, b.mul(b.add(b.mul(part, getRegisters()), i), 512));
  };
  ArrayRef<Value> registers = sums.front();
  b.ifThen(b.bitXor(isFirst, b.i1(true)), [&] {
    Value part = b.sub(group, b.i32(1));
    for (auto [i, sum] : llvm::enumerate(registers))
      b.store(sum, getPlace(part, i));
  });
  b.namedBarrier(b.i32(kAllConsumersBarrier), threads);
  SmallVector<Value> all = b.choose(
      isFirst,
      [&] {
        SmallVector<Value> all(registers);
        for (int64_t part = 0; part + 1 < config.getBlockParts(); ++part)
          for (auto [i, sum] : llvm::enumerate(all))
            sum = arith::AddFOp::create(b, sum,
                                        b.load(getPlace(b.i32(part), i), f32));
        return all;
      },
      [&] { return SmallVector<Value>(registers); });
  // The next tile's sums go to the same places.
  b.namedBarrier(b.i32(kAllConsumersBarrier), threads);
  b.ifThen(isFirst, [&] { storeTile(tile, {all}); });
}

void Consumer::finishTile(const Tile &tile, ArrayRef<SmallVector<Value>> sums,
                          Value phase) {
  if (!splitK && !clusterSplitK)
    return config.getBlockParts() > 1 ? addParts(tile, sums)
                                      : storeTile(tile, sums);
  SmallVector<Value> flat;
  for (ArrayRef<Value> subtile : sums)
    flat.append(subtile.begin(), subtile.end());
  auto storeAll = [&](ValueRange all) {
    store.setSources(tile);
    SmallVector<SmallVector<Value>> subtiles;
    for (; !all.empty(); all = all.drop_front(getRegisters()))
      subtiles.emplace_back(all.take_front(getRegisters()));
    storeTile(tile, subtiles);
  };
  if (clusterSplitK)
    return clusterSplitK->reduce(phase, kernel.thread, flat, storeAll);
  splitK->reduce(kernel.getTileIndex(tile), tile.split, kernel.thread, flat,
                 storeAll);
}

void Consumer::build() {
  Schedule schedule = getSchedule();
  SmallVector<Value> initial{schedule.position.stage, schedule.position.phase};
  if (clusterSplitK)
    initial.push_back(b.i32(0));
  b.loop(schedule.first, scheduler.getCount(), schedule.stride, initial,
         [&](Value item, ValueRange carried) -> SmallVector<Value> {
           Tile tile = getTile(item);
           RingPosition position{carried[0], carried[1]};
           Value phase = clusterSplitK ? carried[2] : Value();
           finishTile(tile, sumTile(tile, position), phase);
           SmallVector<Value> next{position.stage, position.phase};
           if (clusterSplitK)
             next.push_back(b.bitXor(phase, b.i32(1)));
           return next;
         });
  if (const auto &groups = scheduler.getGroups();
      groups && groups->ofRows && !spec.hasUndefPadding())
    clearRows(kernel, groups->table,
              RowClearer{kernel.thread, config.getConsumers() * 128,
                         NVVM::GridDimXOp::create(b, b.getI32Type()),
                         /*inBulk=*/store.isInBulk()});
  store.finish();
}

void Consumer::prefetchSources(const Tile &tile) {
  store.setSources(tile);
  int64_t threads = config.getConsumers() * 128;
  b.ifThen(b.less(kernel.thread, b.i32(std::min(threads, config.getTileN()))),
           [&] {
             store.getEpilogue().prefetch(b.add(tile.m, kernel.thread),
                                          b.add(tile.n, kernel.thread));
           });
}

void Consumer::prepare(const Tile &tile) {
  store.setSources(tile);
  if (!store.isInBulk() || config.getSwapAb())
    return;
  Value local = launder(b, kernel.thread);
  store.getEpilogue().loadColumns(
      b.add(tile.n, store.getFragments().getFirstCol(b, local)));
}

void Consumer::storeTile(const Tile &tile, ArrayRef<SmallVector<Value>> sums) {
  storeSubtiles(tile, sums);
  store.endTile(tile);
}

void Consumer::storeSubtiles(const Tile &tile,
                             ArrayRef<SmallVector<Value>> sums) {
  if (config.getEpilogue() == GemmEpilogue::Unrolled || sums.size() == 1) {
    for (auto [subtile, registers] : llvm::enumerate(sums))
      storeSubtile(tile, b.i32(subtile), registers);
    return;
  }
  // One copy of the code for all subtiles: the sums move to where it expects
  // them.
  SmallVector<Value> initial;
  for (ArrayRef<Value> subtile : sums)
    initial.append(subtile.begin(), subtile.end());
  size_t registers = sums.front().size();
  b.loopRolled(b.i32(0), b.i32(sums.size()), b.i32(1), initial,
               [&](Value subtile, ValueRange carried) -> SmallVector<Value> {
                 storeSubtile(tile, subtile, carried.take_front(registers));
                 // After the last subtile, it does not matter.
                 SmallVector<Value> next(carried.drop_front(registers));
                 llvm::append_range(next, carried.take_back(registers));
                 return next;
               });
}

void Consumer::storeSubtile(const Tile &tile, Value subtile, ValueRange sums) {
  bool swapped = config.getSwapAb();
  const FragmentLayout &fragments = store.getFragments();
  // Addresses of the store would otherwise be kept in registers all through
  // the main loop.
  Value local = launder(b, kernel.thread);
  Value inGroup = b.bitAnd(local, 127);
  Value slice = config.getSharers() == 1 ? b.i32(0) : b.shiftRight(local, 7);
  Value subtileRow =
      b.add(b.mul(slice, 64), b.mul(subtile, config.getSharers() * 64));
  Fragment fragment;
  fragment.row = b.add(b.add(swapped ? tile.n : tile.m, subtileRow),
                       fragments.getFirstRow(b, inGroup));
  fragment.col =
      b.add(swapped ? tile.m : tile.n, fragments.getFirstCol(b, inGroup));
  fragment.swapped = swapped;
  store.storePart(tile,
                  {subtile, inGroup, fragment,
                   /*row=*/swapped ? Value() : subtileRow,
                   /*col=*/swapped ? subtileRow : Value()},
                  sums);
}

void sm90::buildConsumer(const MatmulContext &kernel,
                         const TileScheduler &scheduler, Ring ring) {
  Consumer(kernel, scheduler, ring).build();
}
