//===- LoadScales.cpp - The warp that brings factors to promote with ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Matmul/ScaleFactorCopy.h"
#include "Roles.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

void sm100::buildScaleLoader(const MatmulContext &kernel,
                             const TileScheduler &scheduler, Ring scales) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  bool swapped = kernel.config.getSwapAb();
  int64_t blockK = layout.rows.getBlockK();
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(1)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           ScaleFactorCopy ofRows(
               kernel, tile,
               ScaleFactorCopy::Source{/*ofA=*/!swapped, /*number=*/0, blockK},
               ScaleFactorCopy::Stages{kernel.shared, layout.offsetRowScales,
                                       layout.rowScaleStride, layout.rowScales},
               kernel.lane);
           ScaleFactorCopy ofCols(
               kernel, tile,
               ScaleFactorCopy::Source{/*ofA=*/swapped, /*number=*/0, blockK},
               ScaleFactorCopy::Stages{kernel.shared, layout.offsetColScales,
                                       layout.colScaleStride, layout.colScales},
               kernel.lane);
           return b.loop(
               tile.kBegin, tile.kEnd, b.i32(1), carried,
               [&](Value k, ValueRange carried) -> SmallVector<Value> {
                 RingPosition position{carried[0], carried[1]};
                 scales.waitEmpty(position);
                 ofRows.copy(k, position.stage);
                 ofCols.copy(k, position.stage);
                 // Arrives when this lane's copies have landed; the barrier
                 // counts it from the start (noinc).
                 NVVM::CpAsyncMBarrierArriveOp::create(
                     b, scales.getFullBarrier(position.stage), /*noinc=*/true);
                 RingPosition next = scales.advance(position);
                 return {next.stage, next.phase};
               });
         });
}
