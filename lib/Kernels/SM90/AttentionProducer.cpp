//===- AttentionProducer.cpp - The warp that fills attention's rings ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Blocks/BulkCopy.h"
#include "AttentionContext.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Copies `rows` rows, the first of which is `sequence`, box by box, behind
/// `before` rows that others bring.
static void copyRows(const AttentionContext &kernel, StringRef map,
                     const SharedMatrix &matrix, Value place, Value barrier,
                     Value sequence, Value head, Value batch,
                     int64_t before = 0) {
  KernelBuilder &b = kernel.b;
  for (int64_t box = 0; box < matrix.getBoxes(); ++box)
    bulkLoad(b, kernel.getParam(map),
             b.offset(kernel.shared, b.add(place, box * matrix.getBoxBytes() +
                                                      before * matrix.width)),
             barrier,
             kernel.getCoordinates(b.i32(box * matrix.getBoxColumns()),
                                   sequence, head, batch));
}

/// Where the keys of a tile are: of each box, the first row and the batch, or
/// the page.
static SmallVector<std::pair<Value, Value>>
findKeys(const AttentionContext &kernel, Value key, const AttentionTile &tile) {
  KernelBuilder &b = kernel.b;
  int64_t pageSize = kernel.spec.pageSize;
  if (!pageSize)
    return {{key, tile.batch}};
  // All pages of a batch, of which a tile may have some beyond the last.
  Value count = b.div(kernel.getParam("keys"), pageSize);
  Value table =
      b.element(kernel.getParam("page_table.ptr"),
                b.mul(b.widen(tile.batch), b.widen(count)), b.getI32Type());
  Value last = b.sub(kernel.getParam("pages"), b.i32(1));
  Value first = b.rem(key, pageSize);
  SmallVector<std::pair<Value, Value>> found;
  for (int64_t row = 0; row < kernel.memory.k.rows;
       row += kernel.memory.getKeysOfBox(kernel.spec)) {
    Value number =
        b.min(b.div(b.add(key, row), pageSize), b.sub(count, b.i32(1)));
    Value page = b.loadConstant(
        b.element(table, b.widen(number), b.getI32Type()), b.getI32Type());
    page = b.createOrFold<arith::MinSIOp>(
        b.createOrFold<arith::MaxSIOp>(page, b.i32(0)), last);
    found.emplace_back(first, page);
  }
  return found;
}

/// `empty` is where the next tile of queries goes.
static void copyQueries(const AttentionContext &kernel, RingPosition empty,
                        const AttentionTile &tile) {
  KernelBuilder &b = kernel.b;
  Ring ring = kernel.q;
  ring.waitEmpty(empty);
  ring.expectBytes(empty.stage, b.i32(kernel.memory.q.getBytes()));
  copyRows(kernel, "q.map", kernel.memory.q, b.i32(kernel.memory.offsetQ),
           ring.getFullBarrier(empty.stage), tile.query, tile.head, tile.batch);
}

/// Copies tile `number` of keys, and of values, to a stage of their rings,
/// which they walk side by side; `position` is a consumer's.
static void copyKeysAndValues(const AttentionContext &kernel,
                              RingPosition position, Value number,
                              const AttentionTile &tile) {
  KernelBuilder &b = kernel.b;
  const AttentionMemory &memory = kernel.memory;
  RingPosition empty{position.stage, b.bitXor(position.phase, b.i32(1))};
  Value key = b.mul(number, kernel.config.getTileK());
  auto boxes = findKeys(kernel, key, tile);
  auto copy = [&](Ring ring, StringRef map, const SharedMatrix &matrix,
                  int64_t offset) {
    ring.waitEmpty(empty);
    ring.expectBytes(empty.stage, b.i32(matrix.getBytes()));
    Value place = kernel.getPlace(matrix, offset, empty.stage);
    for (auto [i, box] : llvm::enumerate(boxes))
      copyRows(kernel, map, matrix, place, ring.getFullBarrier(empty.stage),
               box.first, tile.headOfK, box.second,
               static_cast<int64_t>(i) * memory.getKeysOfBox(kernel.spec));
  };
  copy(kernel.k, "k.map", memory.k, memory.offsetK);
  copy(kernel.v, "v.map", memory.v, memory.offsetV);
}

void sm90::buildAttentionProducer(const AttentionContext &kernel) {
  KernelBuilder &b = kernel.b;
  const AttentionTiles &tiles = kernel.tiles;
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
               copyQueries(kernel, q, tile);
             copyKeysAndValues(kernel, at, last, tile);
           });
           SmallVector<Value> next = b.loop(
               b.i32(1), b.sub(tile.end, tile.begin), b.i32(1),
               {at.stage, at.phase},
               [&](Value i, ValueRange carried) -> SmallVector<Value> {
                 RingPosition at{carried[0], carried[1]};
                 RingPosition after = ring.advance(at);
                 load([&] {
                   copyKeysAndValues(kernel, after, b.sub(last, i), tile);
                 });
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
