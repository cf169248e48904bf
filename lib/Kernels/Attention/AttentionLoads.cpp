//===- AttentionLoads.cpp - Copies of queries, keys and values ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionLoads.h"
#include "../Blocks/BulkCopy.h"

using namespace mlir;
using namespace mlir::fp8;

int64_t fp8::getKeysOfBox(const AttentionSpec &spec, int64_t tileK) {
  return spec.pageSize ? std::min(spec.pageSize, tileK) : tileK;
}

/// Copies rows, the first of which is `sequence`, box by box, to `stage`,
/// behind `before` rows that others bring.
static void copyRows(const AttentionBlock &kernel, AttentionOperand to,
                     Value stage, Value sequence, Value head, Value batch,
                     int64_t before = 0) {
  KernelBuilder &b = kernel.b;
  const SwizzledMatrix &matrix = to.matrix;
  Value place = kernel.getPlace(matrix, to.offset, stage);
  Value barrier = to.ring.getFullBarrier(stage);
  for (int64_t box = 0; box < matrix.getBoxes(); ++box)
    bulkLoad(b, kernel.getParam(to.map),
             b.offset(kernel.shared, b.add(place, box * matrix.getBoxBytes() +
                                                      before * matrix.width)),
             barrier,
             kernel.getCoordinates(b.i32(box * matrix.getBoxColumns()),
                                   sequence, head, batch));
}

/// The page of a key; of one beyond a batch's last page, that.
static Value findPage(const AttentionBlock &kernel, const AttentionTile &tile,
                      Value key) {
  KernelBuilder &b = kernel.b;
  int64_t pageSize = kernel.spec.pageSize;
  Value count = b.div(kernel.getParam("keys"), pageSize);
  Value table =
      b.element(kernel.getParam("page_table.ptr"),
                b.mul(b.widen(tile.batch), b.widen(count)), b.getI32Type());
  Value last = b.sub(kernel.getParam("pages"), b.i32(1));
  Value number = b.min(b.div(key, pageSize), b.sub(count, b.i32(1)));
  Value page = b.loadConstant(b.element(table, b.widen(number), b.getI32Type()),
                              b.getI32Type());
  return b.createOrFold<arith::MinSIOp>(
      b.createOrFold<arith::MaxSIOp>(page, b.i32(0)), last);
}

std::pair<Value, Value> fp8::findKey(const AttentionBlock &kernel,
                                     const AttentionTile &tile, Value key) {
  if (!kernel.spec.pageSize)
    return {tile.batch, key};
  return {findPage(kernel, tile, key), kernel.b.rem(key, kernel.spec.pageSize)};
}

/// Where the keys of a tile are: of each box, the first row and the batch, or
/// the page.
static SmallVector<std::pair<Value, Value>>
findKeys(const AttentionBlock &kernel, Value key, const AttentionTile &tile) {
  KernelBuilder &b = kernel.b;
  if (!kernel.spec.pageSize)
    return {{key, tile.batch}};
  Value first = b.rem(key, kernel.spec.pageSize);
  SmallVector<std::pair<Value, Value>> found;
  for (int64_t row = 0; row < kernel.tileK;
       row += getKeysOfBox(kernel.spec, kernel.tileK))
    found.emplace_back(first, findPage(kernel, tile, b.add(key, row)));
  return found;
}

/// Waits for room, and announces a tile.
static void expectTile(const AttentionBlock &kernel, AttentionOperand to,
                       RingPosition empty) {
  to.ring.waitEmpty(empty);
  to.ring.expectBytes(empty.stage, kernel.b.i32(to.matrix.getBytes()));
}

void fp8::copyQueries(const AttentionBlock &kernel, AttentionOperand queries,
                      RingPosition empty, const AttentionTile &tile) {
  expectTile(kernel, queries, empty);
  copyRows(kernel, queries, empty.stage, tile.query, tile.head, tile.batch);
}

void fp8::copyKeysAndValues(const AttentionBlock &kernel,
                            ArrayRef<AttentionOperand> operands,
                            RingPosition empty, Value number,
                            const AttentionTile &tile) {
  KernelBuilder &b = kernel.b;
  Value key = b.mul(number, kernel.tileK);
  if (tile.origin)
    key = b.add(key, tile.origin);
  auto boxes = findKeys(kernel, key, tile);
  for (const AttentionOperand &operand : operands) {
    expectTile(kernel, operand, empty);
    for (auto [i, box] : llvm::enumerate(boxes))
      copyRows(
          kernel, operand, empty.stage, box.first, tile.headOfK, box.second,
          static_cast<int64_t>(i) * getKeysOfBox(kernel.spec, kernel.tileK));
  }
}
