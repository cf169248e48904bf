//===- Consumer.cpp - The warpgroups that multiply and store --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Consumer.h"
#include "../Blocks/Epilogue.h"
#include "../Blocks/SplitK.h"
#include "../Blocks/TileStore.h"
#include "../Matmul/ClearRows.h"
#include "../Matmul/MatmulEpilogue.h"
#include "Accumulate.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
class Consumer {
public:
  Consumer(const MatmulContext &kernel, const TileScheduler &scheduler)
      : kernel(kernel), scheduler(scheduler), b(kernel.b), spec(kernel.spec),
        config(kernel.config), layout(kernel.layout),
        fragments(
            Wgmma::getFragmentLayout(spec.getResultCols(config.getCols()))) {}

  void build(Ring ring);

private:
  /// What of the epilogue need not wait for the sums.
  void prepare(Epilogue &epilogue, const Tile &tile);
  void storeTile(Epilogue &epilogue, BulkTileStore *bulkStore, const Tile &tile,
                 ArrayRef<SmallVector<Value>> sums);
  void storeSubtiles(Epilogue &epilogue, BulkTileStore *bulkStore,
                     const Tile &tile, ArrayRef<SmallVector<Value>> sums);
  /// `bulkStore` is null where each element is stored by itself.
  void storeSubtile(Epilogue &epilogue, BulkTileStore *bulkStore,
                    const Tile &tile, Value subtile, ValueRange sums);

  /// Element by element, or two by two, what of a subtile is in the result.
  void storeDirectly(const Tile &tile, const Fragment &fragment, bool inPairs,
                     PackedAt packedAt);

  const MatmulContext &kernel;
  const TileScheduler &scheduler;
  KernelBuilder &b;
  const MatmulSpec &spec;
  GemmConfigAttr config;
  const MatmulLayout &layout;
  FragmentLayout fragments;
};
} // namespace

void Consumer::build(Ring ring) {
  Value group = b.shiftRight(kernel.warp, 2);
  // Which slice of the tile this warpgroup computes.
  Value slice = kernel.isPingPong() ? b.i32(0) : group;
  Value barrierId = b.add(group, 1);
  Accumulator accumulator(kernel, ring, slice);

  std::optional<BulkTileStore> bulkStore;
  if (config.getStore() == GemmStore::TMA)
    bulkStore.emplace(
        b,
        BulkTileStore::Shape{config.getSubtiles(), layout.storeBytes,
                             spec.resultType.getIntOrFloatBitWidth() / 8,
                             config.getStaging()},
        fragments, kernel.shared,
        b.add(b.mul(group, config.getStaging() * 64 * 128),
              layout.offsetStaging),
        barrierId, b.equal(b.bitAnd(kernel.warp, 3), 0));
  Epilogue epilogue(b, getEpilogueShape(spec), fragments,
                    /*vectorLoads=*/config.getStore() == GemmStore::TMA);
  if (spec.isDual())
    epilogue.setFirst(getFirstShape(spec), spec.first->numOperands,
                      spec.first->position);
  if (spec.amax)
    epilogue.resetAmax();
  std::optional<SplitK> splitK;
  int64_t registers = config.getCols() / 2;
  if (config.getSplitK() > 1)
    splitK.emplace(
        b,
        SplitK::Shape{config.getSplitK(), config.getConsumers() * 128,
                      config.getSubtiles() * registers},
        kernel.getParam("workspace.ptr"), kernel.getParam("counters.ptr"),
        b.offset(kernel.shared,
                 b.i32(layout.offsetBarriers + 16 * config.getStages())),
        b.i32(kAllConsumersBarrier));

  Value first = scheduler.getFirst(), stride = scheduler.getStride();
  RingPosition position{b.i32(0), b.i32(0)};
  if (kernel.isPingPong()) {
    // The second warpgroup starts one tile later, in the schedule and the ring,
    // and lets the first one begin.
    Value isSecond = b.equal(group, 1);
    RingPosition later = ring.skip(position, scheduler.getKBlocks());
    position = {b.select(isSecond, later.stage, position.stage),
                b.select(isSecond, later.phase, position.phase)};
    first = b.add(first, b.mul(group, stride));
    stride = b.mul(stride, 2);
    b.ifThen(isSecond, [&] { b.namedBarrierArrive(b.i32(kTurnBarrier), 256); });
  }

  b.loop(first, scheduler.getCount(), stride, {position.stage, position.phase},
         [&](Value item, ValueRange carried) -> SmallVector<Value> {
           Tile tile = scheduler.getTile(b, item);
           // What decides about branches.
           if (tile.restK)
             for (Value *value : {&tile.kEnd, &tile.restK})
               *value = b.uniform(*value);
           if (tile.firstK)
             tile.headK = b.uniform(tile.headK);
           if (tile.rowEnd)
             tile.rowEnd = b.uniform(tile.rowEnd);
           RingPosition position{carried[0], carried[1]};
           // Warpgroups take turns on the tensor cores: each waits at its own
           // barrier for the other to have issued a whole tile.
           if (kernel.isPingPong())
             b.namedBarrier(b.add(group, kTurnBarrier), 256);
           SmallVector<SmallVector<Value>> sums =
               accumulator.accumulate(tile, position, [&] {
                 if (kernel.isPingPong())
                   b.namedBarrierArrive(b.sub(b.i32(kTurnBarrier + 1), group),
                                        256);
                 if (!splitK)
                   prepare(epilogue, tile);
               });
           if (kernel.isPingPong())
             position = ring.skip(position, scheduler.getKBlocks());
           auto finish = [&](ArrayRef<SmallVector<Value>> sums) {
             storeTile(epilogue, bulkStore ? &*bulkStore : nullptr, tile, sums);
           };
           if (!splitK) {
             finish(sums);
           } else {
             SmallVector<Value> flat;
             for (ArrayRef<Value> subtile : sums)
               flat.append(subtile.begin(), subtile.end());
             splitK->reduce(
                 kernel.getTileIndex(tile), tile.split, kernel.thread, flat,
                 [&](ValueRange all) {
                   kernel.setSources(epilogue, tile);
                   SmallVector<SmallVector<Value>> subtiles;
                   for (; !all.empty(); all = all.drop_front(registers))
                     subtiles.emplace_back(all.take_front(registers));
                   finish(subtiles);
                 });
           }
           return {position.stage, position.phase};
         });
  if (const auto &groups = scheduler.getGroups();
      groups && groups->ofRows && !spec.hasUndefPadding)
    clearRows(kernel, groups->table,
              RowClearer{kernel.thread, config.getConsumers() * 128,
                         NVVM::GridDimXOp::create(b, b.getI32Type()),
                         /*inBulk=*/bulkStore.has_value()});
  if (bulkStore)
    bulkStore->finish();
  if (spec.amax && !spec.areSiblings())
    epilogue.storeAmax(kernel.getParam("amax.ptr"), kernel.lane);
}

void Consumer::prepare(Epilogue &epilogue, const Tile &tile) {
  kernel.setSources(epilogue, tile);
  if (config.getStore() != GemmStore::TMA)
    return;
  Value local = launder(b, kernel.thread);
  epilogue.loadColumns(b.add(tile.n, fragments.getFirstCol(b, local)));
}

void Consumer::storeTile(Epilogue &epilogue, BulkTileStore *bulkStore,
                         const Tile &tile, ArrayRef<SmallVector<Value>> sums) {
  storeSubtiles(epilogue, bulkStore, tile, sums);
  // Each result has its own.
  if (spec.amax && spec.areSiblings()) {
    epilogue.storeAmax(kernel.getParam(tile, "amax", ".ptr"), kernel.lane);
    epilogue.resetAmax();
  }
}

void Consumer::storeSubtiles(Epilogue &epilogue, BulkTileStore *bulkStore,
                             const Tile &tile,
                             ArrayRef<SmallVector<Value>> sums) {
  if (config.getEpilogue() == GemmEpilogue::Unrolled || sums.size() == 1) {
    for (auto [subtile, registers] : llvm::enumerate(sums))
      storeSubtile(epilogue, bulkStore, tile, b.i32(subtile), registers);
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
                 storeSubtile(epilogue, bulkStore, tile, subtile,
                              carried.take_front(registers));
                 // After the last subtile, it does not matter.
                 SmallVector<Value> next(carried.drop_front(registers));
                 llvm::append_range(next, carried.take_back(registers));
                 return next;
               });
}

void Consumer::storeSubtile(Epilogue &epilogue, BulkTileStore *bulkStore,
                            const Tile &tile, Value subtile, ValueRange sums) {
  bool swapped = config.getSwapAb();
  // Addresses of the store would otherwise be kept in registers all through
  // the main loop.
  Value local = launder(b, kernel.thread);
  Value inGroup = b.bitAnd(local, 127);
  Value slice = kernel.isPingPong() ? b.i32(0) : b.shiftRight(local, 7);
  Value subtileRow =
      b.add(b.mul(slice, 64), b.mul(subtile, config.getSharers() * 64));
  Fragment fragment;
  fragment.row = b.add(b.add(swapped ? tile.n : tile.m, subtileRow),
                       fragments.getFirstRow(b, inGroup));
  fragment.col =
      b.add(swapped ? tile.m : tile.n, fragments.getFirstCol(b, inGroup));
  fragment.swapped = swapped;
  epilogue.beginSubtile(fragment);
  auto getDual = [](ValueRange of, int64_t pair) -> Pair {
    return {of[2 * pair], of[2 * pair + 1]};
  };
  // A pair of products has the columns of the first one first.
  ValueRange ofFirst = sums.take_front(spec.isDual() ? sums.size() / 2 : 0);
  ValueRange own = sums.drop_front(ofFirst.size());
  auto packedAt = [&](int64_t pair) {
    return epilogue.evaluate(pair, getDual(own, pair),
                             ofFirst.empty() ? Pair() : getDual(ofFirst, pair));
  };
  if (bulkStore) {
    SmallVector<Value> origin{tile.n, b.add(tile.m, subtileRow)};
    if (spec.hasBatch("d"))
      origin.push_back(tile.batch);
    auto storeInBulk = [&](PackedAt packedAt) {
      bulkStore->storeSubtile(kernel.getParam(tile, "d", ".map"), subtile,
                              inGroup, origin, packedAt);
    };
    if (!tile.rowEnd) {
      storeInBulk(packedAt);
    } else {
      // Rows beyond the group's are another one's.
      SmallVector<Value> packed;
      for (size_t pair = 0; pair < fragments.pairs.size(); ++pair)
        packed.push_back(packedAt(pair));
      auto takePacked = [&](int64_t pair) { return packed[pair]; };
      b.ifThenElse(
          b.less(tile.rowEnd, b.add(origin[1], 64)),
          [&] {
            bulkStore->skipSubtile();
            storeDirectly(tile, fragment, /*inPairs=*/true, takePacked);
          },
          [&] { storeInBulk(takePacked); });
    }
  } else {
    storeDirectly(tile, fragment, /*inPairs=*/false, packedAt);
  }
  epilogue.endSubtile();
}

void Consumer::storeDirectly(const Tile &tile, const Fragment &fragment,
                             bool inPairs, PackedAt packedAt) {
  DirectTileStore(b, spec.resultType, fragments, kernel.getParam(tile, "m"),
                  kernel.getParam(tile, "n"),
                  kernel.getParam(tile, "d", ".stride_m"), inPairs)
      .storeSubtile(kernel.getResult(tile), fragment, packedAt);
}

void fp8::buildConsumer(const MatmulContext &kernel,
                        const TileScheduler &scheduler, Ring ring) {
  Consumer(kernel, scheduler).build(ring);
}
