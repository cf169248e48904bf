//===- GroupTable.cpp - Where groups begin --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GroupTable.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

Value GroupTable::getAddress(Value index, int64_t table) const {
  return b.offset(base,
                  b.add(b.mul(index, 4), offset + table * 4 * (groups + 1)));
}

Value GroupTable::load(Value index, int64_t table) const {
  return b.load(getAddress(index, table), b.getI32Type());
}

void GroupTable::build(Value bounds, Value extent, int64_t tileExtent,
                       Value thread, int64_t threads) {
  auto forEach = [&](int64_t count, llvm::function_ref<void(Value)> body) {
    b.loop(thread, b.i32(count), b.i32(threads), {},
           [&](Value index, ValueRange) -> SmallVector<Value> {
             body(index);
             return {};
           });
    NVVM::BarrierOp::create(b);
  };
  // Unsigned: what is negative is beyond the extent, too.
  forEach(masked ? groups : groups + 1, [&](Value index) {
    Value bound = b.load(b.element(bounds, b.widen(index), b.getI32Type()),
                         b.getI32Type());
    b.store(b.min(bound, extent), getAddress(index, 0));
  });
  // Each adds up all before it: a scan would be more code, and groups are few.
  forEach(groups + 1, [&](Value index) {
    SmallVector<Value> sums =
        b.loop(b.i32(0), index, b.i32(1), {b.i32(0)},
               [&](Value group, ValueRange carried) -> SmallVector<Value> {
                 Value rows = b.sub(getEnd(group), getBegin(group));
                 return {b.add(carried[0], b.ceilDiv(rows, tileExtent))};
               });
    b.store(sums[0], getAddress(index, 1));
  });
}

Value GroupTable::getEnd(Value group) const {
  if (masked)
    return load(group, 0);
  Value begin = getBegin(group), end = getBegin(b.add(group, 1));
  return b.select(b.less(end, begin), begin, end);
}

Value GroupTable::find(Value tile) const {
  // The last one that begins with the tile or before: empty ones begin where
  // the next one does.
  Value group = b.i32(0);
  for (int64_t step = llvm::PowerOf2Ceil(groups) / 2; step > 0; step /= 2) {
    Value next = b.add(group, step);
    Value known = b.min(next, b.i32(groups - 1));
    Value isAfter = b.less(tile, getFirstTile(known));
    Value isBeyond = b.less(b.i32(groups - 1), next);
    group = b.select(arith::OrIOp::create(b, isAfter, isBeyond), group, next);
  }
  return group;
}
