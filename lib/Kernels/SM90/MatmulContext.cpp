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
    : MatmulBlock(b, spec, config.getSwapAb(), config.getClusterSize(),
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
