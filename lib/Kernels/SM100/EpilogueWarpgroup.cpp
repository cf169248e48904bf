//===- EpilogueWarpgroup.cpp - The warps that make results of sums --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Blocks/Hazards.h"
#include "../Blocks/SplitK.h"
#include "../Blocks/TileStore.h"
#include "../Matmul/ClearRows.h"
#include "../Matmul/MatmulEpilogue.h"
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
  /// `bulkStore` is null where each element is stored by itself.
  void storeChunk(Epilogue &epilogue, BulkTileStore *bulkStore,
                  const Tile &tile, Value firstCol, Value number,
                  ValueRange sums);
  /// What of a chunk is in the result, by its elements or, `inPairs`, by 16
  /// bytes.
  void storeDirectly(const Tile &tile, const Fragment &fragment, bool inPairs,
                     PackedAt packedAt);

  const MatmulContext &kernel;
  KernelBuilder &b;
  const MatmulSpec &spec;
  GemmConfigAttr config;
  const MatmulLayout &layout;
  FragmentLayout fragments;
  /// Chunks of a warpgroup.
  int64_t chunks;
  /// The thread's number in its warpgroup, and the warpgroup's.
  Value inGroup, group;
  std::unique_ptr<TileAccumulators> sums;
};
} // namespace

EpilogueWarpgroup::EpilogueWarpgroup(const MatmulContext &kernel,
                                     Ring accumulators, Ring scales)
    : kernel(kernel), b(kernel.b), spec(kernel.spec), config(kernel.config),
      layout(kernel.layout), fragments(getFragmentLayout(layout.chunkCols)),
      chunks(spec.getResultCols(config.getCols()) / layout.chunkCols /
             config.getEpilogueWarpgroups()) {
  inGroup = b.bitAnd(kernel.thread, 127);
  group =
      config.getEpilogueWarpgroups() == 1
          ? b.i32(0)
          : b.shiftRight(b.sub(kernel.warp, b.i32(kFirstEpilogueWarpgroup)), 2);
  sums = layout.isPromoted()
             ? createPromotedAccumulators(kernel, accumulators, scales, group)
             : createWholeAccumulators(kernel, accumulators, group);
}

void EpilogueWarpgroup::build(const TileScheduler &scheduler) {
  Value barrierId = b.add(group, 1);
  std::optional<BulkTileStore> bulkStore;
  if (config.getStore() == GemmStore::TMA)
    bulkStore.emplace(
        b,
        BulkTileStore::Shape{chunks, layout.storeBytes,
                             spec.resultType.getIntOrFloatBitWidth() / 8,
                             config.getStaging(), /*rows=*/128},
        fragments, kernel.shared,
        b.add(b.mul(group, config.getStaging() * 128 * kRowBytes),
              layout.offsetStaging),
        barrierId, b.equal(b.bitAnd(kernel.warp, 3), 0));
  BulkTileStore *store = bulkStore ? &*bulkStore : nullptr;
  Epilogue epilogue(b, getEpilogueShape(spec), fragments,
                    /*vectorLoads=*/store != nullptr);
  if (spec.isDual())
    epilogue.setFirst(getFirstShape(spec), spec.first->numOperands,
                      spec.first->position);
  if (spec.amax)
    epilogue.resetAmax();
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
           kernel.setSources(epilogue, tile);
           auto finish = [&](Value firstCol, Value number, ValueRange sums) {
             auto storeSums = [&](ValueRange sums) {
               storeChunk(epilogue, store, tile, firstCol, number, sums);
             };
             // The block that comes last has the sums of all parts of K.
             if (splitK)
               splitK->reduce(tile.index, tile.split, inGroup, sums, storeSums);
             else
               storeSums(sums);
           };
           SmallVector<Value> next = sums->take(tile, carried, finish);
           // Each result has its own.
           if (spec.amax && spec.areSiblings()) {
             epilogue.storeAmax(kernel.getParam(tile, "amax", ".ptr"),
                                kernel.lane);
             epilogue.resetAmax();
           }
           return next;
         });
  if (const auto &groups = scheduler.getGroups();
      groups && !spec.hasUndefPadding)
    clearRows(
        kernel, groups->table,
        RowClearer{b.sub(kernel.thread, b.i32(kFirstEpilogueWarpgroup * 32)),
                   config.getEpilogueWarpgroups() * 128,
                   b.mul(scheduler.getStride(), config.getBlocks()),
                   /*inBulk=*/bulkStore.has_value()});
  if (bulkStore)
    bulkStore->finish();
  if (spec.amax && !spec.areSiblings())
    epilogue.storeAmax(kernel.getParam("amax.ptr"), kernel.lane);
}

void EpilogueWarpgroup::storeChunk(Epilogue &epilogue, BulkTileStore *bulkStore,
                                   const Tile &tile, Value firstCol,
                                   Value number, ValueRange sums) {
  bool swapped = config.getSwapAb();
  Fragment fragment;
  fragment.row =
      b.add(swapped ? tile.n : tile.m, fragments.getFirstRow(b, inGroup));
  fragment.col = b.add(swapped ? tile.m : tile.n, firstCol);
  fragment.swapped = swapped;
  epilogue.beginSubtile(fragment);
  auto getDual = [](ValueRange of, int64_t pair) -> Pair {
    return {of[2 * pair], of[2 * pair + 1]};
  };
  ValueRange ofFirst = sums.take_front(spec.isDual() ? sums.size() / 2 : 0);
  ValueRange own = sums.drop_front(ofFirst.size());
  auto packedAt = [&](int64_t pair) {
    return epilogue.evaluate(pair, getDual(own, pair),
                             ofFirst.empty() ? Pair() : getDual(ofFirst, pair));
  };
  if (bulkStore) {
    SmallVector<Value> origin{b.add(tile.n, firstCol), tile.m};
    if (spec.hasBatch("d"))
      origin.push_back(tile.batch);
    auto storeInBulk = [&](PackedAt packedAt) {
      bulkStore->storeSubtile(kernel.getParam(tile, "d", ".map"), number,
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
          b.less(tile.rowEnd, b.add(tile.m, 128)),
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

void EpilogueWarpgroup::storeDirectly(const Tile &tile,
                                      const Fragment &fragment, bool inPairs,
                                      PackedAt packedAt) {
  DirectTileStore(b, spec.resultType, fragments, kernel.getParam(tile, "m"),
                  kernel.getParam(tile, "n"),
                  kernel.getParam(tile, "d", ".stride_m"), inPairs)
      .storeSubtile(kernel.getResult(tile), fragment, packedAt);
}

void sm100::buildEpilogueWarpgroup(const MatmulContext &kernel,
                                   const TileScheduler &scheduler,
                                   Ring accumulators, Ring scales) {
  EpilogueWarpgroup(kernel, accumulators, scales).build(scheduler);
}
