//===- TileAccumulators.cpp - Sums of a tile from tensor memory -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileAccumulators.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

TileAccumulators::TileAccumulators(const MatmulContext &kernel,
                                   Ring accumulators, Value group)
    : kernel(kernel), b(kernel.b), config(kernel.config), layout(kernel.layout),
      accumulators(accumulators), group(group),
      lanes(b.mul(b.bitAnd(kernel.warp, 3), int64_t(32) << 16)) {}

TileAccumulators::~TileAccumulators() = default;

Value TileAccumulators::getAddress(RingPosition sums) const {
  return b.add(kernel.getSums(sums), lanes);
}

void TileAccumulators::release(Value stage) {
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

namespace {
class WholeAccumulators : public TileAccumulators {
public:
  WholeAccumulators(const MatmulContext &kernel, Ring accumulators, Value group)
      : TileAccumulators(kernel, accumulators, group) {}

  SmallVector<Value> begin() const override { return {b.i32(0), b.i32(0)}; }
  SmallVector<Value> take(const Tile &tile, ValueRange state,
                          Finish finish) override;

private:
  /// The chunk's sums; those of a pair's first product come first.
  SmallVector<Value> takeChunk(Value address, Value firstCol);
  void takeChunks(RingPosition sums, Finish finish);
  /// A part of K, all columns in one.
  void takePart(const Tile &tile, RingPosition sums, Finish finish);
};
} // namespace

SmallVector<Value> WholeAccumulators::take(const Tile &tile, ValueRange state,
                                           Finish finish) {
  RingPosition sums{state[0], state[1]};
  accumulators.waitFull(sums);
  fenceAfterSync(b);
  if (config.getSplitK() > 1)
    takePart(tile, sums, finish);
  else
    takeChunks(sums, finish);
  RingPosition next = accumulators.advance(sums);
  return {next.stage, next.phase};
}

SmallVector<Value> WholeAccumulators::takeChunk(Value address, Value firstCol) {
  SmallVector<MemoryColumns> parts{
      {b.add(address, firstCol), layout.chunkCols}};
  if (kernel.spec.isDual())
    parts.push_back(
        {b.add(parts.front().address, config.getCols() / 2), layout.chunkCols});
  return loadColumns(b, parts);
}

void WholeAccumulators::takeChunks(RingPosition sums, Finish finish) {
  // Chunks share their code: it would not fit the instruction cache. Warpgroups
  // take them in turn.
  int64_t epilogue_warpgroups = config.getEpilogueWarpgroups();
  int64_t chunks =
      kernel.spec.getResultCols(config.getCols()) / layout.chunkCols;
  int64_t shared = layout.sharedColumns,
          round = epilogue_warpgroups * layout.chunkCols;
  // The next tile's products begin when the columns that both sets have are in
  // registers, and the set before has been taken; or all of this set.
  Value last = b.add(group, shared ? (llvm::divideCeil(shared, round) - 1) *
                                         epilogue_warpgroups
                                   : chunks - epilogue_warpgroups);
  Value address = getAddress(sums);
  b.loopRolled(group, b.i32(chunks), b.i32(epilogue_warpgroups), ValueRange(),
               [&](Value i, ValueRange) -> SmallVector<Value> {
                 Value chunk = i;
                 // The first set shares its last columns.
                 if (shared)
                   chunk = b.select(b.equal(sums.phase, 0),
                                    b.sub(b.i32(chunks - 1), i), i);
                 Value firstCol = b.mul(chunk, layout.chunkCols);
                 SmallVector<Value> taken = takeChunk(address, firstCol);
                 b.ifThen(b.equal(i, last), [&] { release(sums.stage); });
                 finish(firstCol, b.div(i, epilogue_warpgroups), taken);
                 return {};
               });
}

void WholeAccumulators::takePart(const Tile &tile, RingPosition at,
                                 Finish finish) {
  // A part of K may have no blocks at all: nothing has been computed.
  SmallVector<Value> sums = b.choose(
      b.less(tile.kBegin, tile.kEnd),
      [&] { return takeChunk(getAddress(at), b.i32(0)); },
      [&] { return SmallVector<Value>(layout.chunkCols, b.f32(0.0f)); });
  release(at.stage);
  finish(b.i32(0), b.i32(0), sums);
}

std::unique_ptr<TileAccumulators>
sm100::createWholeAccumulators(const MatmulContext &kernel, Ring accumulators,
                               Value group) {
  return std::make_unique<WholeAccumulators>(kernel, accumulators, group);
}
