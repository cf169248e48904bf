//===- Matmul.cpp - The matmul kernel by mma.sync -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// All warps of a block do the same: they copy K blocks of A and B to a ring in
// shared memory, multiply what has come, and finish and store their sums. Other
// blocks of the multiprocessor work while one waits.
//
//===----------------------------------------------------------------------===//

#include "../Blocks/SplitK.h"
#include "../Matmul/ClearRows.h"
#include "../Matmul/MatmulFunction.h"
#include "../Matmul/MatmulStore.h"
#include "Accumulate.h"
#include "MatmulGenerator.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

/// The named barrier of all threads where parts of K are added up.
static constexpr int64_t kReduceBarrier = 1;

namespace {
class TileWorker {
public:
  explicit TileWorker(const MatmulContext &kernel)
      : kernel(kernel), b(kernel.b), spec(kernel.spec), config(kernel.config),
        store(kernel,
              FragmentLayout::ofMatrices(
                  spec.getResultCols(kernel.layout.warpCols)),
              /*bulk=*/std::nullopt, {kernel.shared, 0},
              {b.i32(0), b.i32(0), kernel.warp, kernel.lane},
              /*inPairs=*/config.getStore() == GemmStore::Pairs),
        splitK(createSplitK()) {}

  void build(const TileScheduler &scheduler);

private:
  std::optional<SplitK> createSplitK() const;
  void finishTile(const Tile &tile, ArrayRef<SmallVector<Value>> sums);
  void storeTile(const Tile &tile, ArrayRef<SmallVector<Value>> sums);

  const MatmulContext &kernel;
  KernelBuilder &b;
  const MatmulSpec &spec;
  GemmConfigAttr config;
  MatmulStore store;
  std::optional<SplitK> splitK;
};
} // namespace

std::optional<SplitK> TileWorker::createSplitK() const {
  if (config.getSplitK() <= 1)
    return std::nullopt;
  return SplitK(
      b,
      SplitK::Shape{config.getSplitK(), config.getThreads(),
                    kernel.layout.subtiles * kernel.layout.getRegisters()},
      kernel.getParam("workspace.ptr"), kernel.getParam("counters.ptr"),
      b.offset(kernel.shared, b.i32(kernel.layout.offsetFlag)),
      b.i32(kReduceBarrier));
}

void TileWorker::storeTile(const Tile &tile,
                           ArrayRef<SmallVector<Value>> sums) {
  bool swapped = config.getSwapAb();
  const FragmentLayout &fragments = store.getFragments();
  Value inGroup = b.bitAnd(kernel.thread, 127);
  Value firstRow = fragments.getFirstRow(
      b, kernel.getAlongRows(kernel.thread, 32 * kernel.layout.warps.ofRows));
  Value firstCol = fragments.getFirstCol(b, kernel.lane);
  if (Value ofWarp = kernel.getWarpCol())
    firstCol = b.add(firstCol, ofWarp);
  for (auto [subtile, registers] : llvm::enumerate(sums)) {
    Value row = b.add(firstRow, static_cast<int64_t>(subtile) *
                                    kernel.layout.subtileStride);
    Fragment fragment{b.add(swapped ? tile.n : tile.m, row),
                      b.add(swapped ? tile.m : tile.n, firstCol), swapped};
    store.storePart(tile,
                    {b.i32(subtile), inGroup, fragment, /*row=*/Value(),
                     /*col=*/Value()},
                    registers);
  }
  store.endTile(tile);
}

void TileWorker::finishTile(const Tile &tile,
                            ArrayRef<SmallVector<Value>> sums) {
  if (!splitK)
    return storeTile(tile, sums);
  SmallVector<Value> flat;
  for (ArrayRef<Value> subtile : sums)
    flat.append(subtile.begin(), subtile.end());
  splitK->reduce(tile.index, tile.split, kernel.thread, flat,
                 [&](ValueRange all) {
                   store.setSources(tile);
                   SmallVector<SmallVector<Value>> subtiles;
                   int64_t registers = kernel.layout.getRegisters();
                   for (; !all.empty(); all = all.drop_front(registers))
                     subtiles.emplace_back(all.take_front(registers));
                   storeTile(tile, subtiles);
                 });
}

void TileWorker::build(const TileScheduler &scheduler) {
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(), {},
         [&](Value item, ValueRange) -> SmallVector<Value> {
           Tile tile = scheduler.getTile(b, item);
           Accumulator accumulator(kernel, tile);
           finishTile(tile, accumulator.accumulate([&] {
             if (!splitK)
               store.setSources(tile);
           }));
           return {};
         });
  if (const auto &groups = scheduler.getGroups();
      groups && groups->ofRows && !spec.hasUndefPadding())
    clearRows(kernel, groups->table,
              RowClearer{kernel.thread, config.getThreads(),
                         NVVM::GridDimXOp::create(b, b.getI32Type()),
                         /*inBulk=*/config.getStore() == GemmStore::Pairs});
  store.finish();
}

static TileScheduler::Shape getSchedule(const MatmulContext &kernel) {
  GemmConfigAttr config = kernel.config;
  int64_t tileM = config.getTileM();
  int64_t tileN = kernel.spec.getResultCols(config.getTileN());
  return {tileM,
          tileN,
          /*clusterM=*/tileM,
          /*clusterN=*/tileN,
          config.getGroup(),
          config.getSplitK(),
          kernel.layout.rows.getBlockK()};
}

static void buildBody(const MatmulContext &kernel) {
  KernelBuilder &b = kernel.b;
  GemmConfigAttr config = kernel.config;
  TileScheduler scheduler(b, getSchedule(kernel), kernel.getExtents(),
                          /*rank=*/{},
                          kernel.buildGroups(kernel.layout.offsetGroups,
                                             config.getTileM(),
                                             config.getThreads()));
  TileWorker(kernel).build(scheduler);
  LLVM::ReturnOp::create(b, ValueRange());
}

MatmulForm mma::getMatmulForm(GemmConfigAttr config,
                              const MatmulLayout &layout) {
  bool swapped = config.getSwapAb();
  MatmulForm form{swapped ? layout.colsPart : layout.rows,
                  swapped ? layout.rows : layout.colsPart,
                  /*storeBytes=*/0,
                  /*storeRows=*/0,
                  config.getTileM(),
                  config.getTileN(),
                  config.getSplitK(),
                  config.getRows() * config.getCols(),
                  /*clusterSize=*/1,
                  config.getThreads(),
                  layout.sharedBytes};
  form.readsByThreads = true;
  form.overlaps = false;
  form.storesInPairs = config.getStore() == GemmStore::Pairs;
  form.resident = layout.resident;
  return form;
}

void mma::buildMatmul(MatmulFunction &kernel, const MatmulSpec &spec,
                      GemmConfigAttr config, const MatmulLayout &layout,
                      GPUTargetAttr target) {
  buildBody(MatmulContext(kernel.b, spec, config, layout, target,
                          kernel.getParams(), kernel.shared));
}
