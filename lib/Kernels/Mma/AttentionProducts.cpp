//===- AttentionProducts.cpp - Products of attention by mma.sync ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionProducts.h"
#include "../Attention/ScoreLayout.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

/// Sums of a lane in 16 rows by 16 columns.
static constexpr int64_t kSums = 8;

AttentionProducts::AttentionProducts(const AttentionContext &kernel)
    : kernel(kernel), b(kernel.b), memory(kernel.memory),
      hasCodes(kernel.spec.getElementBytes() == 1),
      qk(b, kernel.spec.q, kernel.spec.k, /*factors=*/Type(),
         kernel.expandsCodes),
      pv(b, kernel.spec.v, kernel.spec.v, /*factors=*/Type(),
         kernel.expandsCodes),
      q(b, memory.q, MatrixLoader::Use::Rows, kernel.shared, kernel.lane,
        b.mul(kernel.warp, 16)),
      k(b, memory.k, MatrixLoader::Use::Columns, kernel.shared, kernel.lane),
      v(b, memory.v,
        hasCodes ? MatrixLoader::Use::LinesOfCodes : MatrixLoader::Use::Lines,
        kernel.shared, kernel.lane) {}

SmallVector<Value> AttentionProducts::multiplyQK(Value stage) {
  Value begin = kernel.getPlace(memory.k, memory.offsetK, stage);
  SmallVector<Value> scores(kernel.tileK / 2, b.f32(0.0f));
  for (int64_t step = 0; step < memory.q.rowBytes / 32; ++step) {
    Words rows = q.load(b.i32(memory.offsetQ), /*row=*/0, 2 * step);
    for (int64_t key = 0; key < kernel.tileK; key += 16)
      qk.multiply(rows, k.load(begin, key, 2 * step), ScaleWords(),
                  MutableArrayRef(scores).slice(key / 2, kSums));
  }
  return scores;
}

Words AttentionProducts::loadValues(Value begin, int64_t step,
                                    int64_t columns) {
  if (!hasCodes)
    return v.load(begin, 16 * step, 2 * columns);
  Words pairs = v.load(begin, 32 * step, columns);
  // The even ones of 16 columns, then the odd ones.
  Words words;
  for (int64_t odd : {0, 1})
    for (int64_t half : {0, 1})
      words[2 * odd + half] = NVVM::PermuteOp::create(
          b, b.getI32Type(), pairs[2 * half], pairs[2 * half + 1],
          b.i32(odd ? 0x7531 : 0x6420), NVVM::PermuteMode::DEFAULT);
  return words;
}

void AttentionProducts::addPV(ArrayRef<Value> p, Value stage,
                              const Value (&corrections)[2],
                              MutableArrayRef<Value> sums) {
  Value begin = kernel.getPlace(memory.v, memory.offsetV, stage);
  for (int64_t column = 0, e = kernel.spec.headDimOfV / 16; column < e;
       ++column) {
    MutableArrayRef<Value> own = sums.slice(column * kSums, kSums);
    SmallVector<Value> product(own.begin(), own.end());
    if (corrections[0])
      product.assign(kSums, b.f32(0.0f));
    for (size_t step = 0; step < p.size() / 4; ++step) {
      Words rows;
      llvm::copy(p.slice(4 * step, 4), rows.begin());
      pv.multiply(rows, loadValues(begin, static_cast<int64_t>(step), column),
                  ScaleWords(), product);
    }
    for (auto [i, sum] : llvm::enumerate(own))
      sum = corrections[0]
                ? Value(LLVM::FMAOp::create(
                      b, b.getF32Type(), sum,
                      corrections[kFragmentScores.getRow(i)], product[i]))
                : product[i];
  }
}
