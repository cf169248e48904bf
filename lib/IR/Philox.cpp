//===- Philox.cpp - Random numbers that go by a counter -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/Philox.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int kRounds = 10;

SmallVector<Value> fp8::buildPhilox(ScalarBuilder &b, ArrayRef<Value> start,
                                    ArrayRef<Value> startKey) {
  SmallVector<Value> counter(start), key(startKey);
  auto multiply = [&](uint32_t factor, Value word) {
    auto product =
        arith::MulUIExtendedOp::create(b, b.i32(int32_t(factor)), word);
    return std::pair(product.getLow(), product.getHigh());
  };
  auto mix = [&](Value x, Value y, Value z) -> Value {
    return arith::XOrIOp::create(b, arith::XOrIOp::create(b, x, y), z);
  };
  for (int round = 0; round < kRounds; ++round) {
    if (round != 0) {
      key[0] = arith::AddIOp::create(b, key[0], b.i32(int32_t(0x9e3779b9)));
      key[1] = arith::AddIOp::create(b, key[1], b.i32(int32_t(0xbb67ae85)));
    }
    auto [low0, high0] = multiply(0xd2511f53, counter[0]);
    auto [low1, high1] = multiply(0xcd9e8d57, counter[2]);
    counter = {mix(high1, counter[1], key[0]), low1,
               mix(high0, counter[3], key[1]), low0};
  }
  return counter;
}
