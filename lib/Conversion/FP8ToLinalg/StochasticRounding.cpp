//===- StochasticRounding.cpp - Random numbers, and what rounds by them ---===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "fp8/IR/Philox.h"

using namespace mlir;
using namespace mlir::fp8;

/// One of four values, by the two bits of `index`.
static Value selectOfFour(ScalarBuilder &b, ArrayRef<Value> values,
                          Value index) {
  auto hasBit = [&](int bit) {
    return b.cmpi(arith::CmpIPredicate::ne,
                  arith::AndIOp::create(b, index, b.i32(bit)), b.i32(0));
  };
  Value isOdd = hasBit(1);
  return b.select(hasBit(2), b.select(isOdd, values[3], values[2]),
                  b.select(isOdd, values[1], values[0]));
}

Value fp8::roundStochastically(OpBuilder &builder, Location loc, Value value,
                               ValueRange seed, Value row, Value column) {
  ScalarBuilder b(loc, builder);
  auto toWord = [&](Value index) -> Value {
    return arith::IndexCastUIOp::create(b, b.getI32Type(), index);
  };
  column = toWord(column);
  Value group = arith::ShRUIOp::create(b, column, b.i32(2));
  SmallVector<Value> words = buildPhilox(
      b, {group, toWord(row), seed[2], seed[3]}, {seed[0], seed[1]});
  Value word = selectOfFour(b, words, column);
  // 24 bits: all of them are f32s.
  Value uniform =
      b.mul(arith::UIToFPOp::create(b, b.getF32Type(),
                                    arith::ShRUIOp::create(b, word, b.i32(8))),
            b.f32(0x1p-24f));

  // E2M1 has one bit of mantissa from 1 on, and 0 and 0.5 below.
  auto isBelow = [&](Value x, float limit) {
    return b.cmpf(arith::CmpFPredicate::OLT, x, b.f32(limit));
  };
  Value bits = b.bits(value);
  Value sign = arith::AndIOp::create(b, bits, b.i32(int32_t(0x80000000)));
  Value magnitudeBits = arith::AndIOp::create(b, bits, b.i32(0x7fffffff));
  Value magnitude = b.fromBits(magnitudeBits);
  Value normal =
      b.fromBits(arith::AndIOp::create(b, magnitudeBits, b.i32(0x7fc00000)));
  Value low = b.select(isBelow(magnitude, 0.5f), b.f32(0.0f),
                       b.select(isBelow(magnitude, 1.0f), b.f32(0.5f), normal));
  auto byBinade = [&](float first, float second, float third) {
    return b.select(
        isBelow(magnitude, 2.0f), b.f32(first),
        b.select(isBelow(magnitude, 4.0f), b.f32(second), b.f32(third)));
  };
  Value step = byBinade(0.5f, 1.0f, 2.0f), inverse = byBinade(2.0f, 1.0f, 0.5f);
  Value fraction = b.mul(arith::SubFOp::create(b, magnitude, low), inverse);
  Value rounded = b.select(b.cmpf(arith::CmpFPredicate::OLT, uniform, fraction),
                           arith::AddFOp::create(b, low, step), low);
  return b.fromBits(arith::OrIOp::create(b, b.bits(rounded), sign));
}
