//===- AttentionProducer.cpp - The warp that fills attention's rings ------===//
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
using namespace mlir::fp8::sm90;

void sm90::buildAttentionProducer(const AttentionContext &kernel) {
  KernelBuilder &b = kernel.b;
  const AttentionTiles &tiles = kernel.tiles;
  const AttentionMemory &memory = kernel.memory;
  AttentionOperand queries{"q.map", kernel.q, memory.q, memory.offsetQ};
  AttentionOperand operands[] = {{"k.map", kernel.k, memory.k, memory.offsetK},
                                 {"v.map", kernel.v, memory.v, memory.offsetV}};
  // `position` is a consumer's.
  auto copyKeys = [&](RingPosition position, Value number,
                      const AttentionTile &tile) {
    copyKeysAndValues(kernel, operands,
                      {position.stage, b.bitXor(position.phase, b.i32(1))},
                      number, tile);
  };
  Value warp = b.sub(kernel.warp, b.i32(kernel.getConsumerWarps()));
  Value isLoader = b.equal(warp, 0);
  // One lane copies: of the first warp, which the others leave to it alone
  // unless values are transposed.
  auto load = [&](llvm::function_ref<void()> body) {
    b.ifThen(isLoader, [&] { b.electOne(body); });
  };
  std::optional<ValueTranspose> values;
  if (kernel.memory.hasTransposedV())
    values.emplace(kernel, warp);
  Ring ring = kernel.k;
  // Beyond all keys there are zeros; beyond a batch's own anything.
  auto getThere = [&](const AttentionTile &tile, Value number) {
    return ValueTranspose::Keys{kernel.getKeysBefore(tile, number),
                                kernel.spec.hasRestBehindKeys()
                                    ? kernel.getKeysThere(tile, number)
                                    : Value()};
  };
  b.loop(tiles.getFirst(), tiles.getCount(), tiles.getStride(),
         {b.i32(1), b.i32(0), b.i32(0)},
         [&](Value item, ValueRange carried) -> SmallVector<Value> {
           AttentionTile tile = tiles.getTile(item);
           RingPosition q{b.i32(0), carried[0]}, at{carried[1], carried[2]};
           Value last = b.sub(tile.end, b.i32(1));
           load([&] {
             if (!kernel.config.isForFewQueries())
               copyQueries(kernel, queries, q, tile);
             copyKeys(at, last, tile);
           });
           SmallVector<Value> next = b.loop(
               b.i32(1), b.sub(tile.end, tile.begin), b.i32(1),
               {at.stage, at.phase},
               [&](Value i, ValueRange carried) -> SmallVector<Value> {
                 RingPosition at{carried[0], carried[1]};
                 RingPosition after = ring.advance(at);
                 load([&] { copyKeys(after, b.sub(last, i), tile); });
                 if (values)
                   values->transpose(
                       at, getThere(tile, b.sub(last, b.sub(i, b.i32(1)))));
                 return {after.stage, after.phase};
               });
           RingPosition final{next[0], next[1]};
           // Before the next tile of queries, which waits for this one's
           // scores.
           if (values)
             values->transpose(final, getThere(tile, tile.begin));
           RingPosition after = ring.advance(final);
           return {b.bitXor(carried[0], b.i32(1)), after.stage, after.phase};
         });
}
