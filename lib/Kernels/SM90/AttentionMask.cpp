//===- AttentionMask.cpp - Keys that a mask hides -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask has a byte for each batch, query and key. All blocks of a batch read
// the same few, from L2; with one query all rows of a thread have the same.
//
//===----------------------------------------------------------------------===//

#include "AttentionMask.h"
#include "../Blocks/Hazards.h"
#include "Softmax.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

SmallVector<Value> sm90::hideByMask(const AttentionContext &kernel,
                                    const AttentionTile &tile, Value number,
                                    ArrayRef<Value> scores) {
  KernelBuilder &b = kernel.b;
  Type i8 = b.getI8Type();
  Value thread = launder(b, kernel.thread);
  Value row = b.add(b.mul(b.shiftRight(thread, 5), 16),
                    b.shiftRight(b.bitAnd(thread, 31), 2));
  Value key = b.add(b.mul(number, kernel.config.getTileK()),
                    b.mul(b.bitAnd(thread, 3), 2));
  // Keys that are not there are hidden already: any byte will do, and there is
  // none if there are no keys.
  Value hasKeys = b.less(b.i32(0), tile.keys);
  Value last = b.select(hasKeys, b.sub(tile.keys, b.i32(1)), b.i32(0));
  auto getBytes = [&](int64_t half) {
    Value query = kernel.tiles.getRow(tile, b.add(row, 8 * half)).query;
    Value index =
        b.add(b.mul(b.widen(tile.batch), kernel.getParam("mask.stride0")),
              b.mul(b.widen(query), kernel.getParam("mask.stride2")));
    return b.select(hasKeys, b.element(kernel.getParam("mask.ptr"), index, i8),
                    kernel.getParam("q.ptr"));
  };
  bool areAlike = kernel.spec.queries == 1;
  Value bytes[2] = {getBytes(0)};
  if (!areAlike)
    bytes[1] = getBytes(1);
  Value none = arith::ConstantIntOp::create(b, i8, 0);
  Value hidden = b.f32(-std::numeric_limits<float>::infinity());
  SmallVector<Value> masked;
  llvm::SmallDenseMap<std::pair<int64_t, int64_t>, Value> seen;
  for (auto [i, score] : llvm::enumerate(scores)) {
    auto place = static_cast<int64_t>(i);
    int64_t half = areAlike ? 0 : Softmax::getRow(place);
    int64_t column = Softmax::getColumn(place);
    Value &isSeen = seen[{half, column}];
    if (!isSeen) {
      Value index = b.widen(b.min(b.add(key, column), last));
      Value byte = b.loadConstant(b.element(bytes[half], index, i8), i8);
      isSeen = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, byte, none);
    }
    masked.push_back(b.select(isSeen, score, hidden));
  }
  return masked;
}
