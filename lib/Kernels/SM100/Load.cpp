//===- Load.cpp - The thread that fills the ring of a matmul --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Blocks/BulkCopy.h"
#include "../Blocks/OperandCopy.h"
#include "../Matmul/MatmulArguments.h"
#include "Roles.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

static void copyOperands(const MatmulContext &kernel, const Tile &tile,
                         const RingStage &stage) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  bool swapped = kernel.config.getSwapAb();
  auto copy = [&](StringRef name, Value map, const OperandTile &part,
                  Value origin, int64_t offset, int64_t stride) {
    copyOperand(b, kernel.shared,
                SharedOperand{map, &part, origin,
                              kernel.spec.hasBatch(name) ? tile.batch : Value(),
                              offset, stride, /*rank=*/Value(),
                              /*blocks=*/Value()},
                stage);
  };
  Value rows = swapped ? tile.n : tile.m, cols = swapped ? tile.m : tile.n;
  // The tile's rows are this block's own; its columns are both blocks'.
  if (kernel.rank)
    cols = b.add(cols, b.mul(kernel.rank, kernel.config.getBlockCols()));
  StringRef ofRows = kernel.getRowName(), ofCols = kernel.getColName();
  copy(ofRows, kernel.getParam(tile, ofRows, ".map"), layout.rows, rows,
       layout.offsetRows, layout.rows.getBytes());
  copy(ofCols, kernel.getParam(tile, ofCols, ".map"), layout.colsPart, cols,
       layout.offsetCols, layout.cols.getBytes());
  if (kernel.spec.isDual())
    copy(ofCols, kernel.getParam(getNameOfResult("b", 1) + ".map"),
         layout.colsPart, cols, layout.offsetCols + layout.colsPart.getBytes(),
         layout.cols.getBytes());
}

namespace {
/// Rows of a tile that are one operand's.
struct FactorRows {
  /// Factors of the lane's first row at K block 0; bytes from one row to the
  /// next.
  Value first, stride;
  /// Rows of the tile, as far as the operand has them, from the lane's first
  /// one on.
  Value left;
};

/// Factors of a tile's rows, or columns: those that a lane copies.
struct ScaleFactorCopy {
  FactorRows rows;
  /// Factors of a pair's second product, the second half of the tile's columns.
  std::optional<FactorRows> second;
  /// The lane's first row of the tile, and how many there are of a half.
  Value row;
  int64_t half = 0;
  /// Groups of 128 rows, and bytes of all.
  int64_t groups, bytes;
  /// The lane's first four in the first stage.
  Value place;
};
} // namespace

/// Rows of the operand that has the factors `name`, whose row `start` is the
/// tile's row `offset`: up to `count` of them, all for 0. `row` is the lane's
/// first one of the tile.
static FactorRows getFactorRows(const MatmulContext &kernel, const Tile &tile,
                                const std::string &name, bool isBatched,
                                Value extent, Value start, Value row,
                                Value step, int64_t offset, int64_t count) {
  KernelBuilder &b = kernel.b;
  Value stride = kernel.getParam(tile, name, ".stride_row");
  // That of a second half may be before the first row.
  Value index = b.add(b.widen(start), b.sub(b.widen(row), b.i64(offset)));
  index = b.mul(index, stride);
  if (isBatched)
    index = b.add(index, b.mul(b.widen(tile.batch),
                               kernel.getParam(tile, name, ".stride_batch")));
  index = b.add(index, b.widen(b.mul(step, 4)));
  Value end = extent;
  if (count)
    end = b.min(end, b.add(start, count));
  Value last = b.add(b.sub(end, b.min(start, end)), offset);
  return {b.offset(kernel.getParam(tile, name, ".ptr"), index), stride,
          b.sub(last, b.min(row, last))};
}

/// A lane copies four factors, those of an instruction, of one row at a time.
/// Neighbouring lanes have what lies together in memory: the row's for the K
/// block. Then come rows r, r + 32, r + 64 and r + 96, whose factors are one
/// row of an atom. Atoms of a K block are so far apart that a warp writes to
/// all banks of shared memory.
static ScaleFactorCopy getScaleFactorCopy(const MatmulContext &kernel, bool ofA,
                                          const Tile &tile) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  StringRef name = ofA ? "scale_a" : "scale_b";
  bool ofRows = ofA != kernel.config.getSwapAb();
  int64_t steps = layout.factorSteps;
  Value step = b.rem(kernel.lane, steps);
  Value quarter = b.bitAnd(b.div(kernel.lane, steps), 3);
  Value inQuarter = b.div(kernel.lane, 4 * steps);
  Value row = b.add(b.mul(quarter, 32), inQuarter);
  Value place =
      b.add(b.add(b.mul(step, layout.getFactorStride()), b.mul(inQuarter, 16)),
            b.mul(quarter, 4));
  int64_t count = ofRows ? 0 : kernel.config.getCols();
  ScaleFactorCopy copy;
  copy.row = row;
  copy.groups = ofRows ? layout.rowFactors : layout.colFactors;
  copy.bytes = ofRows ? layout.getRowFactorBytes() : layout.getColFactorBytes();
  copy.place =
      b.add(place, ofRows ? layout.offsetRowFactors : layout.offsetColFactors);
  auto getRows = [&](const std::string &of, int64_t offset, int64_t most) {
    return getFactorRows(kernel, tile, of, kernel.spec.hasBatch(name),
                         kernel.getParam(tile, ofA ? "m" : "n"),
                         ofA ? tile.m : tile.n, row, step, offset, most);
  };
  if (ofA || !kernel.spec.isDual()) {
    copy.rows = getRows(name.str(), /*offset=*/0, count);
    return copy;
  }
  copy.half = count / 2;
  copy.rows = getRows(name.str(), /*offset=*/0, copy.half);
  copy.second = getRows(getNameOfResult(name, 1), copy.half, copy.half);
  return copy;
}

/// Beyond the operand factors are zero, like its elements.
static void copyFactors(const MatmulContext &kernel,
                        const ScaleFactorCopy &copy, Value k, Value stage) {
  KernelBuilder &b = kernel.b;
  int64_t steps = kernel.layout.factorSteps;
  Value shared =
      b.offset(kernel.shared, b.add(b.mul(stage, copy.bytes), copy.place));
  Value isThere;
  if (steps > 1) {
    // The last K block may have fewer.
    Value step = b.add(b.mul(k, steps), b.rem(kernel.lane, steps));
    Value all = b.div(kernel.getParam("k"), 4 * kernel.spec.a.getFactorK());
    isThere = b.less(step, all);
  }
  auto getSource = [&](const FactorRows &rows) -> std::pair<Value, Value> {
    return {b.offset(rows.first, b.mul(b.widen(k), 4 * steps)),
            isThere ? b.select(isThere, rows.left, b.i32(0)) : rows.left};
  };
  auto [source, left] = getSource(copy.rows);
  std::pair<Value, Value> second;
  if (copy.second)
    second = getSource(*copy.second);
  for (int64_t group = 0; group < copy.groups; ++group)
    for (int64_t first = 0; first < 32; first += 8 / steps) {
      int64_t row = group * 128 + first;
      int64_t place =
          group * steps * kernel.layout.getFactorStride() + first * 16;
      Value from = b.offset(source, b.mul(copy.rows.stride, row)), end = left;
      if (copy.second) {
        Value isFirst = b.less(b.add(copy.row, row), b.i32(copy.half));
        from =
            b.select(isFirst, from,
                     b.offset(second.first, b.mul(copy.second->stride, row)));
        end = b.select(isFirst, end, second.second);
      }
      NVVM::CpAsyncOp::create(
          b, b.offset(shared, b.i32(place)), from,
          /*size=*/4, NVVM::LoadCacheModifierKind::CA,
          b.select(b.less(b.i32(row), end), b.i32(4), b.i32(0)));
    }
}

void sm100::buildFactorLoader(const MatmulContext &kernel,
                              const TileScheduler &scheduler, Ring ring) {
  KernelBuilder &b = kernel.b;
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(1)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           ScaleFactorCopy ofA = getScaleFactorCopy(kernel, /*ofA=*/true, tile);
           ScaleFactorCopy ofB =
               getScaleFactorCopy(kernel, /*ofA=*/false, tile);
           return b.loop(
               tile.kBegin, tile.kEnd, b.i32(1), carried,
               [&](Value k, ValueRange carried) -> SmallVector<Value> {
                 RingPosition position{carried[0], carried[1]};
                 ring.waitEmpty(position);
                 copyFactors(kernel, ofA, k, position.stage);
                 copyFactors(kernel, ofB, k, position.stage);
                 // Arrives when this lane's copies have landed; the barrier
                 // counts it from the start (noinc).
                 NVVM::CpAsyncMBarrierArriveOp::create(
                     b, ring.getFullBarrier(position.stage), /*noinc=*/true);
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase};
               });
         });
}

void sm100::buildFactorRelay(const MatmulContext &kernel,
                             const TileScheduler &scheduler, Ring ring) {
  KernelBuilder &b = kernel.b;
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(0)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           return b.loop(
               tile.kBegin, tile.kEnd, b.i32(1), carried,
               [&](Value, ValueRange carried) -> SmallVector<Value> {
                 RingPosition position{carried[0], carried[1]};
                 ring.waitFull(position);
                 // The other block's thread has them copied to tensor memory.
                 fenceForBulkCopies(b);
                 NVVM::MBarrierArriveOp::create(
                     b, /*res=*/Type(),
                     kernel.getOfFirst(ring.getFullBarrier(position.stage)),
                     /*count=*/Value());
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase};
               });
         });
}

void sm100::buildLoader(const MatmulContext &kernel,
                        const TileScheduler &scheduler, Ring ring) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  int64_t bytes = layout.rows.getBytes() + layout.cols.getBytes();
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(1)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           return b.loop(
               tile.kBegin, tile.kEnd, b.i32(1), carried,
               [&](Value k, ValueRange carried) -> SmallVector<Value> {
                 RingPosition position{carried[0], carried[1]};
                 ring.waitEmpty(position);
                 // The first of two blocks waits for the bytes of both.
                 auto expect = [&] {
                   ring.expectBytes(position.stage,
                                    b.i32(bytes * kernel.config.getCtaGroup()));
                 };
                 if (kernel.rank)
                   b.ifThen(b.equal(kernel.rank, 0), expect);
                 else
                   expect();
                 Value barrier =
                     kernel.getOfFirst(ring.getFullBarrier(position.stage));
                 copyOperands(kernel, tile, RingStage{position, barrier, k});
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase};
               });
         });
}
