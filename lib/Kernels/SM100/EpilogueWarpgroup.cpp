//===- EpilogueWarpgroup.cpp - The warps that make results of sums --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Blocks/Hazards.h"
#include "../Blocks/SplitK.h"
#include "../Matmul/ClearRows.h"
#include "../Matmul/MatmulStore.h"
#include "Roles.h"
#include "Tcgen05.h"
#include "TileAccumulators.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

namespace {
class EpilogueWarpgroup {
public:
  EpilogueWarpgroup(const MatmulContext &kernel, Ring accumulators,
                    Ring scales);

  void build(const TileScheduler &scheduler);

private:
  std::optional<BulkTileStore::Shape> getBulkShape() const;
  /// Stores sums of `chunkCols` columns, those from `firstCol` on.
  void storeChunk(MatmulStore &store, const Tile &tile, Value firstCol,
                  Value number, ValueRange sums);

  const MatmulContext &kernel;
  KernelBuilder &b;
  const MatmulSpec &spec;
  GemmConfigAttr config;
  const MatmulLayout &layout;
  FragmentLayout fragments;
  /// The thread's number in its warpgroup, and the warpgroup's.
  Value inGroup, group;
  std::unique_ptr<TileAccumulators> sums;
};
} // namespace

EpilogueWarpgroup::EpilogueWarpgroup(const MatmulContext &kernel,
                                     Ring accumulators, Ring scales)
    : kernel(kernel), b(kernel.b), spec(kernel.spec), config(kernel.config),
      layout(kernel.layout), fragments(getFragmentLayout(layout.chunkCols)) {
  inGroup = b.bitAnd(kernel.thread, 127);
  group =
      config.getEpilogueWarpgroups() == 1
          ? b.i32(0)
          : b.shiftRight(b.sub(kernel.warp, b.i32(kFirstEpilogueWarpgroup)), 2);
  sums = layout.isPromoted()
             ? createPromotedAccumulators(kernel, accumulators, scales, group)
             : createWholeAccumulators(kernel, accumulators, group);
}

std::optional<BulkTileStore::Shape> EpilogueWarpgroup::getBulkShape() const {
  if (config.getStore() != GemmStore::TMA)
    return std::nullopt;
  int64_t chunks = spec.getResultCols(config.getCols()) / layout.chunkCols /
                   config.getEpilogueWarpgroups();
  return BulkTileStore::Shape{chunks, layout.storeBytes,
                              spec.resultType.getIntOrFloatBitWidth() / 8,
                              config.getStaging(), /*rows=*/128};
}

void EpilogueWarpgroup::build(const TileScheduler &scheduler) {
  Value barrierId = b.add(group, 1);
  MatmulStore store(kernel, fragments, getBulkShape(),
                    {kernel.shared, layout.offsetStaging},
                    {group, barrierId, kernel.warp, kernel.lane});
  std::optional<SplitK> splitK;
  if (config.getSplitK() > 1)
    splitK.emplace(
        b, SplitK::Shape{config.getSplitK(), /*threads=*/128, config.getCols()},
        kernel.getParam("workspace.ptr"), kernel.getParam("counters.ptr"),
        kernel.getShared(layout.offsetFlag), barrierId);

  // Sums in registers leave no room for a number that all roles have.
  Value first = scheduler.getFirst();
  if (layout.isPromoted())
    first = launder(b, first);
  b.loop(first, scheduler.getCount(), scheduler.getStride(), sums->begin(),
         [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           // It decides about branches.
           if (tile.rowEnd)
             tile.rowEnd = b.uniform(tile.rowEnd);
           store.setSources(tile);
           auto finish = [&](Value firstCol, Value number, ValueRange sums) {
             auto storeSums = [&](ValueRange sums) {
               storeChunk(store, tile, firstCol, number, sums);
             };
             // The block that comes last has the sums of all parts of K.
             if (splitK)
               splitK->reduce(tile.index, tile.split, inGroup, sums, storeSums);
             else
               storeSums(sums);
           };
           SmallVector<Value> next = sums->take(tile, carried, finish);
           store.endTile(tile);
           return next;
         });
  if (const auto &groups = scheduler.getGroups();
      groups && !spec.hasUndefPadding())
    clearRows(
        kernel, groups->table,
        RowClearer{b.sub(kernel.thread, b.i32(kFirstEpilogueWarpgroup * 32)),
                   config.getEpilogueWarpgroups() * 128,
                   b.mul(scheduler.getStride(), config.getCtaGroup()),
                   /*inBulk=*/store.isInBulk()});
  store.finish();
}

void EpilogueWarpgroup::storeChunk(MatmulStore &store, const Tile &tile,
                                   Value firstCol, Value number,
                                   ValueRange sums) {
  bool swapped = config.getSwapAb();
  Fragment fragment;
  fragment.row =
      b.add(swapped ? tile.n : tile.m, fragments.getFirstRow(b, inGroup));
  fragment.col = b.add(swapped ? tile.m : tile.n, firstCol);
  fragment.swapped = swapped;
  store.storePart(tile, {number, inGroup, fragment, /*row=*/Value(), firstCol},
                  sums);
}

void sm100::buildEpilogueWarpgroup(const MatmulContext &kernel,
                                   const TileScheduler &scheduler,
                                   Ring accumulators, Ring scales) {
  EpilogueWarpgroup(kernel, accumulators, scales).build(scheduler);
}
