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
    : MatmulParams(b, spec, std::move(params)), config(config), layout(layout),
      shared(shared) {
  thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  warp = b.uniform(b.shiftRight(thread, 5));
  lane = b.bitAnd(thread, 31);
  if (!isClustered())
    return;
  rankOfRows = NVVM::ClusterId::create(b, b.getI32Type());
  if (config.getClusterCols() > 1) {
    rankOfCols = b.div(rankOfRows, config.getCluster());
    rankOfRows = b.rem(rankOfRows, config.getCluster());
  }
}

TileScheduler::Rank MatmulContext::getTileRank() const {
  Value ofRows = config.getCluster() > 1 ? rankOfRows : Value();
  if (config.getSwapAb())
    return {rankOfCols, ofRows};
  return {ofRows, rankOfCols};
}

Value MatmulContext::getTileIndex(const Tile &tile) const {
  if (!isClustered())
    return tile.index;
  Value rank = NVVM::ClusterId::create(b, b.getI32Type());
  return b.add(b.mul(tile.index, config.getClusterSize()), rank);
}

void MatmulContext::synchronize() const {
  if (!isClustered()) {
    NVVM::BarrierOp::create(b);
    return;
  }
  NVVM::ClusterArriveOp::create(b, /*aligned=*/UnitAttr());
  NVVM::ClusterWaitOp::create(b, /*aligned=*/UnitAttr());
}
