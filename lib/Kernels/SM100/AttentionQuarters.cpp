//===- AttentionQuarters.cpp - Attention of few queries -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor core multiplies 128 rows, and a warp reaches 32 lanes of what comes
// of it. With its few rows once, one warp would exponentiate alone, longer than
// memory takes to bring the next keys. Each warp has them all, in its own
// lanes, and a quarter of the keys.
//
//===----------------------------------------------------------------------===//

#include "AttentionQuarters.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

/// The barrier of the warpgroup.
static constexpr int64_t kBarrier = 1, kThreads = 128;

AttentionQuarters::AttentionQuarters(const AttentionContext &kernel)
    : kernel(kernel), b(kernel.b), block(kernel),
      parts(kernel,
            PartsLayout(kernel.spec, kernel.config.getRows(),
                        kernel.config.getTileHeads()),
            SumsOrder::Fours, kernel.memory.offsetFlag),
      warp(kernel.warp) {
  block.tileK = kernel.tileK / kCopies;
  block.thread = kernel.lane;
}

void AttentionQuarters::loadQueries(const AttentionTile &tile) {
  parts.loadQueries(tile, kernel.memory.q, kernel.memory.offsetQ, kCopies);
  Ring q = kernel.q;
  b.ifThen(b.equal(kernel.thread, 0), [&] {
    NVVM::MBarrierArriveOp::create(b, /*res=*/Type(),
                                   q.getFullBarrier(b.i32(0)),
                                   /*count=*/Value());
  });
  NVVM::SyncWarpOp::create(b, b.i32(-1));
}

void AttentionQuarters::clearOthers(Value address, int64_t count) {
  SmallVector<Value> zeros(count, b.i32(0));
  // Addresses would be in registers all through the loop over keys.
  Value own = launder(b, warp);
  for (int64_t distance = 1; distance < kCopies; ++distance) {
    Value other = b.bitAnd(b.add(own, distance), kCopies - 1);
    storeColumns(b, b.add(address, b.mul(other, count)), zeros,
                 /*waits=*/false);
  }
}

Softmax::Total AttentionQuarters::getTotal(const Softmax::Total &own) {
  Type f32 = b.getF32Type();
  auto two = VectorType::get({2}, f32);
  Value lane = launder(b, kernel.lane);
  auto getPlace = [&](Value number) {
    return getShared(b.mul(b.add(b.mul(number, 32), lane), 8));
  };
  Value both = LLVM::UndefOp::create(b, two);
  both = LLVM::InsertElementOp::create(b, both, own.exponent, b.i32(0));
  both = LLVM::InsertElementOp::create(b, both, own.sum, b.i32(1));
  LLVM::StoreOp::create(b, both, getPlace(warp), /*alignment=*/8);
  b.namedBarrier(b.i32(kBarrier), kThreads);
  Softmax::Total total;
  for (int64_t i = 0; i < kCopies; ++i) {
    Value loaded =
        LLVM::LoadOp::create(b, two, getPlace(b.i32(i)), /*alignment=*/8);
    Softmax::Total part{LLVM::ExtractElementOp::create(b, loaded, b.i32(0)),
                        LLVM::ExtractElementOp::create(b, loaded, b.i32(1))};
    if (i == 0)
      total = part;
    else
      Softmax::merge(b, total, part);
  }
  return total;
}

SmallVector<Value> AttentionQuarters::addWarps(ArrayRef<Value> numbers,
                                               int64_t group) {
  Type f32 = b.getF32Type();
  auto four = VectorType::get({4}, f32);
  Value lane = launder(b, kernel.lane);
  // Others may still read the group before.
  int64_t offset = kTotalBytes + group % 2 * kGroupBytes;
  auto getPlace = [&](Value number, Value fourth) {
    Value row = b.add(b.mul(number, 32), lane);
    return getShared(
        b.add(b.add(b.mul(row, kRowBytes), b.mul(fourth, 16)), offset));
  };
  for (int64_t i = 0; i < kColumns / 4; ++i) {
    Value all = LLVM::UndefOp::create(b, four);
    for (int64_t j = 0; j < 4; ++j)
      all = LLVM::InsertElementOp::create(b, all, numbers[4 * i + j], b.i32(j));
    LLVM::StoreOp::create(b, all, getPlace(warp, b.i32(i)), /*alignment=*/16);
  }
  b.namedBarrier(b.i32(kBarrier), kThreads);
  SmallVector<Value> sums;
  for (int64_t i = 0; i < kCopies; ++i) {
    Value loaded = LLVM::LoadOp::create(b, four, getPlace(b.i32(i), warp),
                                        /*alignment=*/16);
    for (int64_t j = 0; j < 4; ++j) {
      Value number = LLVM::ExtractElementOp::create(b, loaded, b.i32(j));
      if (i == 0)
        sums.push_back(number);
      else
        sums[j] = arith::AddFOp::create(b, sums[j], number);
    }
  }
  return sums;
}

void AttentionQuarters::store(const AttentionTile &tile,
                              const Softmax::Total &own, Value ofSums,
                              float logOfP) {
  Softmax::Total total = getTotal(own);
  Value weight = Softmax::exp2(
      b, arith::SubFOp::create(b, own.exponent,
                               Softmax::makeFinite(b, total.exponent)));
  SmallVector<Value> sums;
  for (int64_t first = 0; first < kernel.spec.headDimOfV; first += kColumns) {
    SmallVector<Value> numbers =
        loadColumns(b, MemoryColumns{b.add(ofSums, first), kColumns});
    for (Value &number : numbers)
      number = b.mulF(number, weight);
    llvm::append_range(sums, addWarps(numbers, first / kColumns));
  }
  parts.store(tile, sums, total, logOfP);
}
