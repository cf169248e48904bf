//===- AttentionDropout.cpp - Shares that are left out --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionDropout.h"
#include "../Blocks/Hazards.h"

using namespace mlir;
using namespace mlir::fp8;

AttentionDropout::AttentionDropout(KernelBuilder &b, Value pointer,
                                   int64_t threshold)
    : b(b), threshold(threshold) {
  for (int64_t i : {0, 1}) {
    Value both =
        b.loadConstant(b.offset(pointer, b.i64(8 * i)), b.getI64Type());
    // Keys of all rounds are the same in all threads then.
    for (int64_t bits : {0, 32})
      state.push_back(b.uniform(arith::TruncIOp::create(
          b, b.getI32Type(), b.shiftRight(both, bits))));
  }
}

SmallVector<Value> AttentionDropout::draw(Value ofKeys, Value ofQueries,
                                          Value head) const {
  ScalarBuilder scalar(b.getLoc(), b);
  // LLVM would have the keys of all rounds in registers all through the loop.
  SmallVector<Value> words;
  for (Value word : state)
    words.push_back(launder(b, word));
  return DropoutState(scalar, words).draw(scalar, ofKeys, ofQueries, head);
}

Value AttentionDropout::isUpperKept(Value word) const {
  // What is below the upper half does not change how that compares.
  return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, word,
                               b.i32(int32_t(threshold << 16)));
}

Value AttentionDropout::isKept(Value word, bool upper) const {
  if (!upper)
    word = arith::ShLIOp::create(b, word, b.i32(16));
  return isUpperKept(word);
}

Value AttentionDropout::exchange(Value word, int64_t bits) const {
  return NVVM::ShflOp::create(b, b.getI32Type(), b.i32(-1), word, b.i32(bits),
                              b.i32(31), NVVM::ShflKind::bfly,
                              /*return_value_and_is_valid=*/UnitAttr());
}

SmallVector<Value> AttentionDropout::areKept(Value lane, Value ofKeys,
                                             Value ofQueries,
                                             Value head) const {
  Value isOdd = b.equal(b.bitAnd(lane, 4), 4);
  Value query =
      b.add(b.mul(b.bitAnd(lane, 3), 2), b.bitAnd(b.shiftRight(lane, 2), 1));
  SmallVector<Value> words =
      draw(ofKeys, b.add(b.mul(ofQueries, 8), query), head);
  // Numbers of both keys of the lane, for two queries.
  Value numbers[2][2];
  for (int64_t i : {0, 1}) {
    Value own = b.select(isOdd, words[2 + i], words[i]);
    Value others = b.select(isOdd, words[i], words[2 + i]);
    Value received = exchange(others, 4);
    numbers[0][i] = b.select(isOdd, received, own);
    numbers[1][i] = b.select(isOdd, own, received);
  }
  SmallVector<Value> kept;
  for (int64_t i = 0; i < 8; ++i)
    kept.push_back(isKept(numbers[i % 2][i / 2 % 2], i / 4));
  return kept;
}

SmallVector<Value> AttentionDropout::areKeptOfRows(Value lane, Value ofKeys,
                                                   Value ofQueries,
                                                   Value head) const {
  SmallVector<Value> words =
      draw(b.add(b.mul(ofKeys, 4), b.bitAnd(lane, 3)),
           b.add(b.mul(ofQueries, 8), b.shiftRight(lane, 2)), head);
  // Rows 0 and 8 of two keys, then of those 8 further.
  SmallVector<Value> kept;
  for (int64_t i = 0; i < 8; ++i)
    kept.push_back(isKept(words[2 * (i % 2) + i / 4], i / 2 % 2));
  return kept;
}

SmallVector<Value> AttentionDropout::areKeptOfQuery(Value query, Value ofKeys,
                                                    Value head) const {
  Value isSecond = b.equal(b.bitAnd(query, 8), 8);
  Value one = b.select(isSecond, b.i32(1), b.i32(0));
  Value shift = b.select(isSecond, b.i32(0), b.i32(16));
  Value ofQueries = b.add(b.mul(b.shiftRight(query, 4), 8), b.bitAnd(query, 7));
  SmallVector<Value> kept(16);
  for (int64_t group : {0, 2}) {
    SmallVector<Value> words =
        draw(b.add(b.add(ofKeys, group), one), ofQueries, head);
    for (int64_t i = 0; i < 4; ++i) {
      Value received = exchange(words[i], 8);
      Value both[] = {b.select(isSecond, received, words[i]),
                      b.select(isSecond, words[i], received)};
      for (int64_t j : {0, 1})
        kept[2 * (group + j) + i / 2 + 8 * (i % 2)] =
            isUpperKept(arith::ShLIOp::create(b, both[j], shift));
    }
  }
  return kept;
}
