//===- TileSums.cpp - Sums of a tile from tensor memory -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileSums.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

TileSums::TileSums(const MatmulContext &kernel, Ring accumulators, Value group)
    : kernel(kernel), b(kernel.b), config(kernel.config), layout(kernel.layout),
      accumulators(accumulators), group(group),
      lanes(b.mul(b.bitAnd(kernel.warp, 3), int64_t(32) << 16)) {}

TileSums::~TileSums() = default;

Value TileSums::getAddress(Value stage) const {
  return b.add(kernel.memory, b.add(b.mul(stage, config.getCols()), lanes));
}

void TileSums::release(Value stage) {
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
class WholeSums : public TileSums {
public:
  WholeSums(const MatmulContext &kernel, Ring accumulators, Value group)
      : TileSums(kernel, accumulators, group) {}

  SmallVector<Value> begin() const override { return {b.i32(0), b.i32(0)}; }
  SmallVector<Value> take(const Tile &tile, ValueRange state,
                          Finish finish) override;

private:
  /// The chunk's sums; those of a pair's first product come first.
  SmallVector<Value> takeChunk(Value address, Value firstCol);
  void takeChunks(Value address, Value stage, Finish finish);
  /// A part of K, all columns in one.
  void takePart(const Tile &tile, Value address, Value stage, Finish finish);
};
} // namespace

SmallVector<Value> WholeSums::take(const Tile &tile, ValueRange state,
                                   Finish finish) {
  RingPosition sums{state[0], state[1]};
  accumulators.waitFull(sums);
  fenceAfterSync(b);
  Value address = getAddress(sums.stage);
  if (config.getSplitK() > 1)
    takePart(tile, address, sums.stage, finish);
  else
    takeChunks(address, sums.stage, finish);
  RingPosition next = accumulators.advance(sums);
  return {next.stage, next.phase};
}

SmallVector<Value> WholeSums::takeChunk(Value address, Value firstCol) {
  SmallVector<MemoryColumns> parts{
      {b.add(address, firstCol), layout.chunkCols}};
  if (kernel.spec.isPair())
    parts.push_back(
        {b.add(parts.front().address, config.getCols() / 2), layout.chunkCols});
  return loadColumns(b, parts);
}

void WholeSums::takeChunks(Value address, Value stage, Finish finish) {
  // Chunks share their code: it would not fit the instruction cache. Warpgroups
  // take them in turn.
  int64_t finishers = config.getFinishers();
  int64_t chunks =
      kernel.spec.getResultCols(config.getCols()) / layout.chunkCols;
  Value last = b.add(group, chunks - finishers);
  b.loopRolled(group, b.i32(chunks), b.i32(finishers), ValueRange(),
               [&](Value chunk, ValueRange) -> SmallVector<Value> {
                 Value firstCol = b.mul(chunk, layout.chunkCols);
                 SmallVector<Value> sums = takeChunk(address, firstCol);
                 // The next tile's products begin while the last chunk is
                 // worked on.
                 b.ifThen(b.equal(chunk, last), [&] { release(stage); });
                 finish(firstCol, b.div(chunk, finishers), sums);
                 return {};
               });
}

void WholeSums::takePart(const Tile &tile, Value address, Value stage,
                         Finish finish) {
  // A part of K may have no blocks at all: nothing has been computed.
  SmallVector<Value> sums = b.choose(
      b.less(tile.kBegin, tile.kEnd),
      [&] { return takeChunk(address, b.i32(0)); },
      [&] { return SmallVector<Value>(layout.chunkCols, b.f32(0.0f)); });
  release(stage);
  finish(b.i32(0), b.i32(0), sums);
}

std::unique_ptr<TileSums> sm100::createWholeSums(const MatmulContext &kernel,
                                                 Ring accumulators,
                                                 Value group) {
  return std::make_unique<WholeSums>(kernel, accumulators, group);
}
