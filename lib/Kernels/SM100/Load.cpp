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
                         const RingSlot &slot) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  bool swapped = kernel.config.getSwapAb();
  auto copy = [&](Value map, const OperandTile &part, Value origin,
                  int64_t offset, int64_t stride) {
    copyOperand(b, kernel.shared,
                SharedOperand{map, part, origin, offset, stride,
                              /*rank=*/Value(), /*blocks=*/Value()},
                slot);
  };
  Value rows = swapped ? tile.n : tile.m, cols = swapped ? tile.m : tile.n;
  // The tile's rows are this block's own; its columns are both blocks'.
  if (kernel.rank)
    cols = b.add(cols, b.mul(kernel.rank, kernel.config.getBlockCols()));
  copy(kernel.getParam(tile, kernel.getRowName(), ".map"), layout.rows, rows,
       layout.offsetRows, layout.rows.getBytes());
  copy(kernel.getParam(tile, kernel.getColName(), ".map"), layout.colsPart,
       cols, layout.offsetCols, layout.cols.getBytes());
  if (kernel.spec.isPair())
    copy(kernel.getParam(getNameOfResult("b", 1) + ".map"), layout.colsPart,
         cols, layout.offsetCols + layout.colsPart.getBytes(),
         layout.cols.getBytes());
}

namespace {
/// Factors of one operand: those of a lane's rows of a tile.
struct FactorCopy {
  /// Of the lane's first row at K block 0; bytes from one row to the next.
  Value first, stride;
  /// Rows of the tile, as far as the operand has them, from the lane's first
  /// one on.
  Value left;
  /// Atoms along the rows, of how many along K each; bytes of all.
  int64_t atoms, steps, offset;

  int64_t getBytes() const { return atoms * steps * kFactorBytes; }
};
} // namespace

/// A row of an atom has four factors each of rows r, r + 32, r + 64 and r + 96:
/// neighbouring lanes copy those, so that a warp writes 128 bytes that lie
/// together.
static constexpr int64_t kLaneRows = 8;

static FactorCopy getFactorCopy(const MatmulContext &kernel, bool ofA,
                                const Tile &tile) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  StringRef name = ofA ? "scale_a" : "scale_b";
  bool ofRows = ofA != kernel.config.getSwapAb();
  Value own =
      b.add(b.mul(b.bitAnd(kernel.lane, 3), 32), b.shiftRight(kernel.lane, 2));
  Value start = ofA ? tile.m : tile.n;
  Value row = b.add(start, own);
  Value stride = kernel.getParam(tile, name, ".stride_row");
  Value index = b.mul(b.widen(row), stride);
  if (kernel.spec.batched)
    index = b.add(index, b.mul(b.widen(tile.batch),
                               kernel.getParam(tile, name, ".stride_batch")));
  Value end = kernel.getParam(tile, ofA ? "m" : "n");
  if (!ofRows)
    end = b.min(end, b.add(start, kernel.config.getCols()));
  return {b.offset(kernel.getParam(tile, name, ".ptr"), index),
          stride,
          b.sub(end, b.min(row, end)),
          ofRows ? layout.rowFactors : layout.colFactors,
          layout.factorSteps,
          ofRows ? layout.offsetRowFactors : layout.offsetColFactors};
}

/// Beyond the operand factors are zero, like its elements.
static void copyFactors(const MatmulContext &kernel, const FactorCopy &copy,
                        Value k, Value stage) {
  KernelBuilder &b = kernel.b;
  Value slot = b.offset(kernel.shared,
                        b.add(b.add(b.mul(stage, copy.getBytes()), copy.offset),
                              b.mul(kernel.lane, 4)));
  // Four each of some atoms along K, a byte each.
  Value source = b.offset(copy.first, b.mul(b.widen(k), 4 * copy.steps));
  Value atoms = b.div(kernel.getParam("k"), 4 * kernel.spec.a.getFactorK());
  SmallVector<Value> isInsideK;
  for (int64_t step = 0; step < copy.steps; ++step)
    isInsideK.push_back(copy.steps == 1
                            ? Value()
                            : b.less(b.add(b.mul(k, copy.steps), step), atoms));
  for (int64_t atom = 0; atom < copy.atoms; ++atom)
    for (int64_t first = 0; first < 32; first += kLaneRows) {
      int64_t row = atom * 128 + first;
      Value isInside = b.less(b.i32(row), copy.left);
      Value ofRow = b.offset(source, b.mul(copy.stride, row));
      for (int64_t step = 0; step < copy.steps; ++step) {
        Value both =
            isInsideK[step] ? b.bitAnd(isInside, isInsideK[step]) : isInside;
        int64_t place = (atom * copy.steps + step) * kFactorBytes + first * 16;
        NVVM::CpAsyncOp::create(b, b.offset(slot, b.i32(place)),
                                b.offset(ofRow, b.i64(step * 4)),
                                /*size=*/4, NVVM::LoadCacheModifierKind::CA,
                                b.select(both, b.i32(4), b.i32(0)));
      }
    }
}

void sm100::buildFactorLoader(const MatmulContext &kernel,
                              const TileScheduler &scheduler, Ring ring) {
  KernelBuilder &b = kernel.b;
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(1)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           FactorCopy ofA = getFactorCopy(kernel, /*ofA=*/true, tile);
           FactorCopy ofB = getFactorCopy(kernel, /*ofA=*/false, tile);
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
                                    bytes * kernel.config.getBlocks());
                 };
                 if (kernel.rank)
                   b.ifThen(b.equal(kernel.rank, 0), expect);
                 else
                   expect();
                 Value barrier =
                     kernel.getOfFirst(ring.getFullBarrier(position.stage));
                 copyOperands(
                     kernel, tile,
                     RingSlot{position, barrier, k,
                              kernel.spec.batched ? tile.batch : Value()});
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase};
               });
         });
}
