//===- Dropout.cpp - Which shares of attention are left out ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/Dropout.h"
#include "fp8/IR/Philox.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kOne = int64_t(1) << 16;

int64_t fp8::getDropThreshold(std::optional<APFloat> rate) {
  if (!rate)
    return 0;
  return std::lround(rate->convertToDouble() * kOne);
}

float fp8::getFactorOfKept(int64_t threshold) {
  return static_cast<float>(double(kOne) / double(kOne - threshold));
}

DropoutState::DropoutState(ScalarBuilder &b, ArrayRef<Value> words)
    : key{words[0], arith::XOrIOp::create(b, words[1], words[3])},
      last(words[2]) {}

SmallVector<Value> DropoutState::draw(ScalarBuilder &b, Value ofKeys,
                                      Value ofQueries, Value head) const {
  return buildPhilox(b, {ofKeys, ofQueries, head, last}, key);
}

Value fp8::buildIsKept(ScalarBuilder &b, const DropoutState &state, Value head,
                       Value query, Value key, int64_t threshold) {
  auto shift = [&](Value value, int64_t bits) -> Value {
    return arith::ShRUIOp::create(b, value, b.i32(bits));
  };
  auto mask = [&](Value value, int64_t bits) -> Value {
    return arith::AndIOp::create(b, value, b.i32(bits));
  };
  auto times = [&](Value value, int64_t bits) -> Value {
    return arith::ShLIOp::create(b, value, b.i32(bits));
  };
  auto either = [&](Value lhs, Value rhs) -> Value {
    return arith::OrIOp::create(b, lhs, rhs);
  };
  auto isSet = [&](Value value, int64_t bit) {
    return b.cmpi(arith::CmpIPredicate::ne, mask(value, bit), b.i32(0));
  };
  Value ofKeys = either(times(shift(key, 4), 2), mask(shift(key, 1), 3));
  Value ofQueries = either(times(shift(query, 4), 3), mask(query, 7));
  SmallVector<Value> words = state.draw(b, ofKeys, ofQueries, head);
  Value isSecond = isSet(key, 8);
  Value word = b.select(isSet(key, 1), b.select(isSecond, words[3], words[2]),
                        b.select(isSecond, words[1], words[0]));
  Value number = b.select(isSet(query, 8), shift(word, 16), mask(word, 0xffff));
  return b.cmpi(arith::CmpIPredicate::uge, number, b.i32(threshold));
}
