//===- MatmulBlock.cpp - The threads of a matmul kernel -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulBlock.h"

using namespace mlir;
using namespace mlir::fp8;

MatmulBlock::MatmulBlock(KernelBuilder &b, const MatmulSpec &spec,
                         bool isSwapped, int64_t clusterSize,
                         llvm::StringMap<Value> params, Value shared)
    : MatmulParams(b, spec, std::move(params)), shared(shared),
      isSwapped(isSwapped) {
  thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  warp = b.uniform(b.shiftRight(thread, 5));
  lane = b.bitAnd(thread, 31);
  if (clusterSize > 1)
    rank = NVVM::ClusterId::create(b, b.getI32Type());
}

TileScheduler::Rank MatmulBlock::getTileRank(Value ofRows, Value ofCols) const {
  if (isSwapped)
    return {ofCols, ofRows};
  return {ofRows, ofCols};
}

void MatmulBlock::synchronize() const {
  if (!isClustered()) {
    NVVM::BarrierOp::create(b);
    return;
  }
  NVVM::ClusterArriveOp::create(b, /*aligned=*/UnitAttr());
  NVVM::ClusterWaitOp::create(b, /*aligned=*/UnitAttr());
}

std::optional<TileScheduler::Groups>
MatmulBlock::buildGroups(int64_t offset, int64_t tileM, int64_t threads) const {
  const MatmulSpec::Groups *groups = spec.getGroups();
  if (!groups)
    return std::nullopt;
  bool ofRows = groups->of == Grouping::Rows;
  TileScheduler::Groups table{
      GroupTable(b, groups->count, groups->masked, shared, offset), ofRows};
  table.table.build(getParam("bounds.ptr"), getParam(ofRows ? "m" : "k"), tileM,
                    thread, threads);
  return table;
}
