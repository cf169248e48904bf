//===- Finish.cpp - The warps that make results of sums -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Blocks/SplitK.h"
#include "../Blocks/TileStore.h"
#include "../Matmul/MatmulEpilogue.h"
#include "Roles.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

namespace {
class Finisher {
public:
  Finisher(const MatmulContext &kernel, Ring accumulators)
      : kernel(kernel), b(kernel.b), spec(kernel.spec), config(kernel.config),
        layout(kernel.layout), accumulators(accumulators),
        fragments(getFragmentLayout(layout.chunkCols)),
        chunks(spec.getResultCols(config.getCols()) / layout.chunkCols) {}

  void build(const TileScheduler &scheduler);

private:
  /// The chunk's sums; those of a pair's first product come first.
  SmallVector<Value> takeSums(Value address, Value firstCol);
  /// Gives the set of sums back: it has been taken.
  void release(Value stage);
  void finishTile(Epilogue &epilogue, BulkTileStore *bulkStore,
                  const Tile &tile, Value address, Value stage);
  /// The sums of all parts of K, by the block that comes last.
  void finishPart(SplitK &splitK, Epilogue &epilogue, BulkTileStore *bulkStore,
                  const Tile &tile, Value address, Value stage);
  /// `bulkStore` is null where each element is stored by itself.
  void storeChunk(Epilogue &epilogue, BulkTileStore *bulkStore,
                  const Tile &tile, Value firstCol, Value number,
                  ValueRange sums);

  const MatmulContext &kernel;
  KernelBuilder &b;
  const MatmulSpec &spec;
  GemmConfigAttr config;
  const MatmulLayout &layout;
  Ring accumulators;
  FragmentLayout fragments;
  int64_t chunks;
  /// The thread's number in its warpgroup, and the warpgroup's.
  Value inGroup, group;
};
} // namespace

void Finisher::build(const TileScheduler &scheduler) {
  inGroup = b.bitAnd(kernel.thread, 127);
  group = config.getFinishers() == 1
              ? b.i32(0)
              : b.shiftRight(b.sub(kernel.warp, b.i32(kFirstFinisher)), 2);
  Value barrierId = b.add(group, 1);
  std::optional<BulkTileStore> bulkStore;
  if (config.getStore() == GemmStore::TMA)
    bulkStore.emplace(
        b,
        BulkTileStore::Shape{chunks / config.getFinishers(), layout.storeBytes,
                             spec.resultType.getIntOrFloatBitWidth() / 8,
                             config.getStaging(), /*rows=*/128},
        fragments, kernel.shared,
        b.add(b.mul(group, config.getStaging() * 128 * kRowBytes),
              layout.offsetStaging),
        barrierId, b.equal(b.bitAnd(kernel.warp, 3), 0));
  BulkTileStore *store = bulkStore ? &*bulkStore : nullptr;
  Epilogue epilogue(b, getEpilogueShape(spec), fragments,
                    /*vectorLoads=*/store != nullptr);
  if (spec.isPair())
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

  // The quarter of the lanes that the warp reaches.
  Value lanes = b.mul(b.bitAnd(kernel.warp, 3), int64_t(32) << 16);
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(0)},
         [&](Value item, ValueRange carried) -> SmallVector<Value> {
           Tile tile = scheduler.getTile(b, item);
           RingPosition sums{carried[0], carried[1]};
           kernel.setSources(epilogue, tile);
           accumulators.waitFull(sums);
           fenceAfterSync(b);
           Value address =
               b.add(kernel.memory,
                     b.add(b.mul(sums.stage, config.getCols()), lanes));
           if (splitK)
             finishPart(*splitK, epilogue, store, tile, address, sums.stage);
           else
             finishTile(epilogue, store, tile, address, sums.stage);
           // Each result has its own.
           if (spec.amax && spec.isGroup()) {
             epilogue.storeAmax(kernel.getParam(tile, "amax", ".ptr"),
                                kernel.lane);
             epilogue.resetAmax();
           }
           RingPosition next = accumulators.advance(sums);
           return {next.stage, next.phase};
         });
  if (bulkStore)
    bulkStore->finish();
  if (spec.amax && !spec.isGroup())
    epilogue.storeAmax(kernel.getParam("amax.ptr"), kernel.lane);
}

SmallVector<Value> Finisher::takeSums(Value address, Value firstCol) {
  SmallVector<MemoryColumns> parts{
      {b.add(address, firstCol), layout.chunkCols}};
  if (spec.isPair())
    parts.push_back(
        {b.add(parts.front().address, config.getCols() / 2), layout.chunkCols});
  return loadColumns(b, parts);
}

void Finisher::release(Value stage) {
  fenceBeforeSync(b);
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  if (!kernel.rank)
    return accumulators.release(stage, kernel.lane);
  b.ifThen(b.equal(kernel.lane, 0), [&] {
    NVVM::MBarrierArriveOp::create(
        b, /*res=*/Type(),
        kernel.getOfFirst(accumulators.getEmptyBarrier(stage)),
        /*count=*/Value());
  });
}

void Finisher::finishTile(Epilogue &epilogue, BulkTileStore *bulkStore,
                          const Tile &tile, Value address, Value stage) {
  // Chunks share their code: it would not fit the instruction cache. Warpgroups
  // take them in turn.
  int64_t finishers = config.getFinishers();
  Value last = b.add(group, chunks - finishers);
  b.loopRolled(group, b.i32(chunks), b.i32(finishers), ValueRange(),
               [&](Value chunk, ValueRange) -> SmallVector<Value> {
                 Value firstCol = b.mul(chunk, layout.chunkCols);
                 SmallVector<Value> sums = takeSums(address, firstCol);
                 // The next tile's products begin while the last chunk is
                 // worked on.
                 b.ifThen(b.equal(chunk, last), [&] { release(stage); });
                 storeChunk(epilogue, bulkStore, tile, firstCol,
                            b.div(chunk, finishers), sums);
                 return {};
               });
}

void Finisher::finishPart(SplitK &splitK, Epilogue &epilogue,
                          BulkTileStore *bulkStore, const Tile &tile,
                          Value address, Value stage) {
  // A part of K may have no blocks at all: nothing has been computed.
  SmallVector<Value> sums = b.choose(
      b.less(tile.kBegin, tile.kEnd),
      [&] { return takeSums(address, b.i32(0)); },
      [&] { return SmallVector<Value>(layout.chunkCols, b.f32(0.0f)); });
  release(stage);
  splitK.reduce(tile.index, tile.split, inGroup, sums, [&](ValueRange all) {
    storeChunk(epilogue, bulkStore, tile, b.i32(0), b.i32(0), all);
  });
}

void Finisher::storeChunk(Epilogue &epilogue, BulkTileStore *bulkStore,
                          const Tile &tile, Value firstCol, Value number,
                          ValueRange sums) {
  bool swapped = config.getSwapAb();
  Fragment fragment;
  fragment.row =
      b.add(swapped ? tile.n : tile.m, fragments.getFirstRow(b, inGroup));
  fragment.col = b.add(swapped ? tile.m : tile.n, firstCol);
  fragment.swapped = swapped;
  epilogue.beginWave(fragment);
  auto getPair = [](ValueRange of, int64_t pair) -> Pair {
    return {of[2 * pair], of[2 * pair + 1]};
  };
  ValueRange ofFirst = sums.take_front(spec.isPair() ? sums.size() / 2 : 0);
  ValueRange own = sums.drop_front(ofFirst.size());
  auto packedAt = [&](int64_t pair) {
    return epilogue.evaluate(pair, getPair(own, pair),
                             ofFirst.empty() ? Pair() : getPair(ofFirst, pair));
  };
  if (bulkStore) {
    SmallVector<Value> origin{b.add(tile.n, firstCol), tile.m};
    if (spec.batched)
      origin.push_back(tile.batch);
    bulkStore->storeWave(kernel.getParam(tile, "d", ".map"), number, inGroup,
                         origin, packedAt);
  } else {
    DirectTileStore(b, spec.resultType, fragments, kernel.getParam(tile, "m"),
                    kernel.getParam(tile, "n"),
                    kernel.getParam(tile, "d", ".stride_m"))
        .storeWave(kernel.getResult(tile), fragment, packedAt);
  }
  epilogue.endWave();
}

void sm100::buildFinisher(const MatmulContext &kernel,
                          const TileScheduler &scheduler, Ring accumulators) {
  Finisher(kernel, accumulators).build(scheduler);
}
