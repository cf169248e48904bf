//===- Load.cpp - The thread that fills the ring of a matmul --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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
  copy(kernel.getParam(tile, kernel.getRowName(), ".map"), layout.rows, rows,
       layout.offsetRows, layout.rows.getBytes());
  copy(kernel.getParam(tile, kernel.getColName(), ".map"), layout.colsPart,
       cols, layout.offsetCols, layout.cols.getBytes());
  if (kernel.spec.isPair())
    copy(kernel.getParam(getNameOfResult("b", 1) + ".map"), layout.colsPart,
         cols, layout.offsetCols + layout.colsPart.getBytes(),
         layout.cols.getBytes());
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
                 ring.expectBytes(position.stage, bytes);
                 Value barrier = ring.getFullBarrier(position.stage);
                 copyOperands(
                     kernel, tile,
                     RingSlot{position, barrier, k,
                              kernel.spec.batched ? tile.batch : Value()});
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase};
               });
         });
}
