//===- TileScheduler.cpp - Which block computes which output tile ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileScheduler.h"

using namespace mlir;
using namespace mlir::fp8;

OwnK OwnK::get(KernelBuilder &b, const Tile &tile, Value k, int64_t blockK) {
  Value whole = b.i32(blockK);
  Value endsInside =
      b.bitAnd(b.equal(b.add(k, 1), tile.kEnd), b.less(b.i32(0), tile.restK));
  OwnK own{b.select(b.equal(k, 0), tile.headK, b.i32(0)),
           b.select(endsInside, tile.restK, whole), Value()};
  own.isCut = arith::OrIOp::create(b, endsInside, b.less(b.i32(0), own.begin));
  return own;
}

TileScheduler::TileScheduler(KernelBuilder &b, Shape shape, Extents extents,
                             Rank rank, std::optional<Groups> groups)
    : shape(shape), groups(groups), batch(extents.batch), rank(rank) {
  Type i32 = b.getI32Type();
  if (rank.m || rank.n) {
    first = NVVM::ClusterIdXOp::create(b, i32);
    stride = NVVM::ClusterDimXOp::create(b, i32);
  } else {
    first = NVVM::BlockIdXOp::create(b, i32);
    stride = NVVM::GridDimXOp::create(b, i32);
  }
  kBlocks = b.ceilDiv(extents.k, shape.blockK);
  for (ResultExtents extent : extents.results) {
    // What comes from memory may differ from thread to thread, for all that
    // ptxas knows: as a bound it would take all that the loop over tiles
    // carries out of uniform registers.
    Value tilesM = hasGroupsOfRows() ? b.uniform(groups->table.getNumTiles())
                                     : b.ceilDiv(extent.m, shape.clusterM);
    Value tilesN = b.ceilDiv(extent.n, shape.clusterN);
    tiles.push_back({tilesM, tilesN, count});
    Value own = b.mul(tilesM, tilesN);
    if (batch)
      own = b.mul(own, batch);
    count = count ? b.add(count, own) : own;
  }
  if (shape.splitK > 1)
    count = b.mul(count, shape.splitK);
}

Tile TileScheduler::getTile(KernelBuilder &b, Value item) const {
  Tile tile;
  tile.index = item;
  tile.kBegin = b.i32(0);
  tile.kEnd = kBlocks;
  if (shape.splitK > 1) {
    tile.index = b.div(item, shape.splitK);
    tile.split = b.rem(item, shape.splitK);
    tile.kBegin = b.div(b.mul(tile.split, kBlocks), shape.splitK);
    tile.kEnd = b.div(b.mul(b.add(tile.split, 1), kBlocks), shape.splitK);
  }
  Value inBatch = tile.index;
  Value tilesM = tiles.front().m, tilesN = tiles.front().n;
  for (const Tiles &other : ArrayRef(tiles).drop_front()) {
    Value isBefore = b.less(tile.index, other.first);
    Value number = b.i32(&other - tiles.data());
    tile.result =
        b.select(isBefore, tile.result ? tile.result : b.i32(0), number);
    tilesM = b.select(isBefore, tilesM, other.m);
    tilesN = b.select(isBefore, tilesN, other.n);
    inBatch = b.select(isBefore, inBatch, b.sub(tile.index, other.first));
  }
  tile.batch = b.i32(0);
  Value firstRow = b.i32(0);
  if (hasGroupsOfRows()) {
    const GroupTable &table = groups->table;
    tile.batch = table.find(b.div(inBatch, tilesN));
    Value first = table.getFirstTile(tile.batch);
    tilesM = b.sub(table.getFirstTile(b.add(tile.batch, 1)), first);
    inBatch = b.sub(inBatch, b.mul(first, tilesN));
    firstRow = table.getBegin(tile.batch);
    tile.rowEnd = table.getEnd(tile.batch);
  } else if (batch) {
    Value perBatch = b.mul(tilesM, tilesN);
    tile.batch = b.div(inBatch, perBatch);
    inBatch = b.rem(inBatch, perBatch);
  }
  if (groups && !groups->ofRows) {
    Value begin = groups->table.getBegin(tile.batch);
    Value end = groups->table.getEnd(tile.batch);
    Value size = end;
    tile.headK = begin;
    if (!groups->table.isMasked()) {
      // A bulk copy begins at 16 bytes of the innermost dimension; at any other
      // place it is an illegal instruction. Whole blocks are whole lines, too.
      tile.headK = b.rem(begin, shape.blockK);
      tile.firstK = b.sub(begin, tile.headK);
      size = b.sub(end, tile.firstK);
    }
    tile.kEnd =
        b.select(b.equal(begin, end), b.i32(0), b.ceilDiv(size, shape.blockK));
    tile.restK = b.rem(size, shape.blockK);
  }
  // The last group may have fewer rows of tiles.
  int64_t group = llvm::divideCeil(shape.group * shape.tileM, shape.clusterM);
  Value perGroup = b.mul(tilesN, group);
  Value firstM = b.mul(b.div(inBatch, perGroup), group);
  Value inGroup = b.rem(inBatch, perGroup);
  Value rows = b.min(b.sub(tilesM, firstM), b.i32(group));
  tile.m = b.mul(b.add(firstM, b.rem(inGroup, rows)), shape.clusterM);
  tile.m = b.add(tile.m, firstRow);
  if (rank.m)
    tile.m = b.add(tile.m, b.mul(rank.m, shape.tileM));
  tile.n = b.mul(b.div(inGroup, rows), shape.clusterN);
  if (rank.n)
    tile.n = b.add(tile.n, b.mul(rank.n, shape.tileN));
  return tile;
}
