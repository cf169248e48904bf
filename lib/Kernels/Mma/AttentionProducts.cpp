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

static Value getInMatrix(const AttentionContext &kernel) {
  return kernel.b.bitAnd(kernel.lane, 7);
}
/// Bits 3 and 4 of the lane's number: which of four matrices it addresses.
static Value getOdd(const AttentionContext &kernel) {
  return kernel.b.bitAnd(kernel.b.shiftRight(kernel.lane, 3), 1);
}
static Value getUpper(const AttentionContext &kernel) {
  return kernel.b.shiftRight(kernel.lane, 4);
}

// Queries are the instruction's rows: matrices of rows 0-7 and 8-15 of the
// first half of K, then of the second. Keys are its columns: both halves of K
// of the first 8, then of the others. Values are columns whose K lies in lines:
// ldmatrix transposes matrices of 8 keys, and of 8 bits a word has two columns
// of two keys.
AttentionProducts::AttentionProducts(const AttentionContext &kernel)
    : kernel(kernel), b(kernel.b), memory(kernel.memory),
      hasCodes(kernel.spec.getElementBytes() == 1),
      qk(b, kernel.spec.q, kernel.spec.k, /*factors=*/Type(),
         kernel.expandsCodes),
      pv(b, kernel.spec.v, kernel.spec.v, /*factors=*/Type(),
         kernel.expandsCodes),
      q(getLanes(memory.q,
                 b.add(b.add(b.mul(kernel.warp, 16), getInMatrix(kernel)),
                       b.mul(getOdd(kernel), 8)),
                 getUpper(kernel))),
      k(getLanes(memory.k,
                 b.add(getInMatrix(kernel), b.mul(getUpper(kernel), 8)),
                 getOdd(kernel))),
      v(hasCodes
            ? getLanes(memory.v, kernel.lane, b.i32(0))
            : getLanes(memory.v, b.bitAnd(kernel.lane, 15), getUpper(kernel))) {
}

AttentionProducts::Lanes
AttentionProducts::getLanes(const SwizzledMatrix &matrix, Value row,
                            Value chunk) {
  Value place = b.bitXor(chunk, matrix.getSwizzle(b, row));
  return {matrix, b.add(b.mul(row, matrix.width), b.mul(place, 16))};
}

Words AttentionProducts::load(const Lanes &lanes, Value begin, int64_t row,
                              int64_t chunk, bool transposed) {
  const SwizzledMatrix &matrix = lanes.matrix;
  // Rows are moved by multiples of 16, which change no swizzle.
  int64_t inLine = matrix.width / 16;
  Value place = chunk % inLine
                    ? b.bitXor(lanes.place, b.i32(chunk % inLine * 16))
                    : lanes.place;
  place = b.add(b.add(begin, place),
                row * matrix.width + chunk / inLine * matrix.getBoxBytes());
  return loadMatrices(b, b.offset(kernel.shared, place), transposed);
}

SmallVector<Value> AttentionProducts::multiplyQK(Value stage) {
  Value begin = kernel.getPlace(memory.k, memory.offsetK, stage);
  SmallVector<Value> scores(kernel.tileK / 2, b.f32(0.0f));
  for (int64_t step = 0; step < memory.q.rowBytes / 32; ++step) {
    Words rows = load(q, b.i32(memory.offsetQ), /*row=*/0, 2 * step,
                      /*transposed=*/false);
    for (int64_t key = 0; key < kernel.tileK; key += 16)
      qk.multiply(rows, load(k, begin, key, 2 * step, /*transposed=*/false),
                  ScaleWords(), MutableArrayRef(scores).slice(key / 2, kSums));
  }
  return scores;
}

Words AttentionProducts::loadValues(Value begin, int64_t step,
                                    int64_t columns) {
  if (!hasCodes)
    return load(v, begin, 16 * step, 2 * columns, /*transposed=*/true);
  Words pairs = load(v, begin, 32 * step, columns, /*transposed=*/true);
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
