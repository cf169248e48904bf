//===- MatmulContext.cpp - What all parts of a matmul kernel share --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulContext.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

MatmulContext::MatmulContext(KernelBuilder &b, const MatmulSpec &spec,
                             GemmConfigAttr config, const MatmulLayout &layout,
                             llvm::StringMap<Value> params, Value shared)
    : MatmulBlock(b, spec, config.getSwapAb(), config.getClusterBlocks(),
                  std::move(params), shared),
      config(config), layout(layout), rankOfRows(rank) {
  if (config.getClusterCols() > 1) {
    rankOfCols = b.div(rank, config.getClusterRows());
    rankOfRows = b.rem(rank, config.getClusterRows());
  }
}

TileScheduler::Rank MatmulContext::getTileRank() const {
  return MatmulBlock::getTileRank(
      config.getClusterRows() > 1 ? rankOfRows : Value(), rankOfCols);
}

Value MatmulContext::getTileIndex(const Tile &tile) const {
  if (!isClustered())
    return tile.index;
  Value rank = NVVM::ClusterId::create(b, b.getI32Type());
  return b.add(b.mul(tile.index, config.getClusterSize()), rank);
}

Value MatmulContext::getPartBegin(const Tile &tile, Value part) const {
  // As if all parts were split_k's, whose bounds a CPU has.
  int64_t parts = config.getBlockParts();
  // Where their lengths are constants ptxas serializes products.
  Value stages = b.ceilDiv(getExtents().k, layout.getStageK());
  Value number =
      config.getSplitK() > 1 ? b.add(b.mul(tile.split, parts), part) : part;
  return b.div(b.mul(number, stages), parts * config.getSplitK());
}

std::pair<Value, Value> MatmulContext::getBlocks(const Tile &tile) const {
  int64_t parts = config.getBlockParts();
  if (parts == 1)
    return {tile.kBegin, tile.kEnd};
  Value blocks = b.sub(tile.kEnd, tile.kBegin);
  return {b.i32(0), b.div(b.add(blocks, parts - 1), parts)};
}

SmallVector<Value> MatmulContext::loopOverBlocks(
    const Tile &tile, Value first, Value last, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body, Ring &ring,
    int64_t turn) const {
  int64_t parts = config.getBlockParts();
  if (parts == 1)
    return b.loop(first, last, b.i32(1), carried, body);
  SmallVector<Value> begins;
  for (int64_t part = 0; part < parts; ++part)
    begins.push_back(getPartBegin(tile, b.i32(part)));
  Value end = b.sub(tile.kEnd, b.i32(1));
  return b.loop(first, last, b.i32(1), carried,
                [&](Value round, ValueRange carried) {
                  SmallVector<Value> next(carried);
                  for (auto [part, begin] : llvm::enumerate(begins)) {
                    if (int64_t(part) % getProducerTurns() == turn) {
                      next = body(b.min(b.add(begin, round), end), next);
                      continue;
                    }
                    RingPosition after = ring.advance({next[0], next[1]});
                    next = {after.stage, after.phase};
                  }
                  return next;
                });
}

std::optional<ClusterSplitK> MatmulContext::getClusterSplitK() const {
  if (!config.getClusterK())
    return std::nullopt;
  int64_t barriers = layout.offsetBarriers + 16 * config.getStages();
  return ClusterSplitK(b, getPartsOfCluster(TileConfig::get(config)),
                       b.offset(shared, b.i32(layout.offsetParts)),
                       b.offset(shared, b.i32(barriers)), rank);
}
