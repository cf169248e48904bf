//===- AttentionLoader.cpp - The warp that fills attention's rings --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Attention/AttentionLoads.h"
#include "AttentionContext.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

void sm100::buildAttentionLoader(const AttentionContext &kernel) {
  KernelBuilder &b = kernel.b;
  const AttentionTiles &tiles = kernel.tiles;
  const AttentionMemory &memory = kernel.memory;
  AttentionOperand queries{"q.map", kernel.q, memory.q, memory.offsetQ};
  AttentionOperand operands[] = {{"k.map", kernel.k, memory.k, memory.offsetK},
                                 {"v.map", kernel.v, memory.v, memory.offsetV}};
  auto copyTile = [&](RingPosition empty, Value number,
                      const AttentionTile &tile) {
    b.electOne(
        [&] { copyKeysAndValues(kernel, operands, empty, number, tile); });
  };
  Ring ring = kernel.k;
  SmallVector<Value> after =
      b.loop(tiles.getFirst(), tiles.getCount(), tiles.getStride(),
             {b.i32(1), b.i32(0), b.i32(1)},
             [&](Value item, ValueRange carried) -> SmallVector<Value> {
               // All lanes look for what queries see.
               AttentionTile tile = tiles.getTile(item);
               RingPosition at{carried[1], carried[2]};
               Value last = b.sub(tile.end, b.i32(1));
               // Keys before queries, whose place is taken longer.
               copyTile(at, last, tile);
               if (!kernel.config.isForFewQueries())
                 b.electOne([&] {
                   copyQueries(kernel, queries, {b.i32(0), carried[0]}, tile);
                 });
               at = ring.advance(at);
               SmallVector<Value> next = b.loop(
                   b.i32(1), b.sub(tile.end, tile.begin), b.i32(1),
                   {at.stage, at.phase},
                   [&](Value i, ValueRange carried) -> SmallVector<Value> {
                     RingPosition at{carried[0], carried[1]};
                     copyTile(at, b.sub(last, i), tile);
                     RingPosition after = ring.advance(at);
                     return {after.stage, after.phase};
                   });
               return {b.bitXor(carried[0], b.i32(1)), next[0], next[1]};
             });
  // Products that are done say so to barriers of the block: it has to be there.
  Ring values = kernel.v;
  if (!kernel.config.isForFewQueries())
    queries.ring.waitEmpty({b.i32(0), after[0]});
  RingPosition at{after[1], after[2]};
  for (int64_t stage = 0; stage < kernel.config.getStages(); ++stage) {
    ring.waitEmpty(at);
    values.waitEmpty(at);
    at = ring.advance(at);
  }
}
