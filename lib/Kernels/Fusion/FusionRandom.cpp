//===- FusionRandom.cpp - Stochastic rounding of codes --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The number of an element is a word of Philox at the counter of four
// neighbours along the rows of what is quantized. A thread has all four, of a
// chunk or, where that has been transposed, of its own rows, and draws them
// once.

#include "FusionCodes.h"
#include "FusionValues.h"
#include "fp8/IR/Philox.h"

using namespace mlir;
using namespace mlir::fp8;

/// Places of a thread whose random words registers have room for.
static constexpr int64_t kDrawnTogether = 4;

SmallVector<Value> FusionValues::loadSeed(Value seed) {
  SmallVector<Value> &words =
      elements[{seed.getAsOpaquePointer(), /*row=*/0, /*chunk=*/0}];
  // The keys of all rounds are the same in all threads then.
  if (words.empty())
    for (Value word :
         tile.loadWords(*inputs.lookup(seed), ReadSeedOp::kNumWords))
      words.push_back(b.uniform(word));
  return words;
}

/// The words of four neighbours, the first of which is at `column`, in `row`.
static SmallVector<Value> draw(KernelBuilder &b, ArrayRef<Value> seed,
                               Value row, Value column) {
  ScalarBuilder scalar(b.getLoc(), b);
  Value group = b.shiftRight(column, llvm::Log2_64(kPhiloxWords));
  return buildPhilox(scalar, {group, row, seed[2], seed[3]},
                     {seed[0], seed[1]});
}

/// Random words wait for nothing, so that ptxas would make all of them while
/// numbers are loaded, which registers have no room for: branches, which are
/// taken for what is inside, keep them apart.
SmallVector<Value> FusionValues::drawApart(Value inside, int64_t results,
                                           KernelBuilder::Branch build) {
  if (tile.getRows() * tile.getChunks() <= kDrawnTogether)
    return build();
  return b.choose(inside, build,
                  [&] { return SmallVector<Value>(results, b.i32(0)); });
}

SmallVector<Value> FusionValues::evaluateRandomCodes(QuantizeOp op, int64_t row,
                                                     int64_t chunk) {
  SmallVector<Value> seed = loadSeed(op.getSeed());
  if (spec.isTransposed(*spec.layouts.lookup(op.getResult()))) {
    encodeColumns(op, seed, row / kPhiloxWords * kPhiloxWords, chunk);
    return elements.at({op.getResult().getAsOpaquePointer(), row, chunk});
  }
  // Rows of all batches are one batch's, as they are counted.
  Value index = tile.getRow(row);
  SmallVector<Value> numbers = getScaled(op, row, chunk);
  return drawApart(b.less(index, tile.numRows), kChunk / 4, [&] {
    if (spec.isBatched)
      index = b.add(b.mul(tile.batch, tile.numRows), index);
    SmallVector<Value> words;
    for (int64_t e = 0; e < kChunk; e += kPhiloxWords)
      words.push_back(joinCodes(
          b, encodeByChance(
                 b, ArrayRef(numbers).slice(e, kPhiloxWords),
                 draw(b, seed, index, b.add(tile.getColumn(chunk), e)))));
    return words;
  });
}

/// The codes of four rows. A column is a row of the codes, of which these rows
/// are neighbours. Two columns after two others go from words of their type to
/// words of codes, so that few are in registers as numbers.
void FusionValues::encodeColumns(QuantizeOp op, ArrayRef<Value> seed,
                                 int64_t row, int64_t chunk) {
  constexpr int64_t step = 2;
  Type type = op.getSource().getType().getElementType();
  int64_t perColumns = step * type.getIntOrFloatBitWidth() / 32;
  SmallVector<SmallVector<Value>> stored, scales, codes(kPhiloxWords);
  for (int64_t i = 0; i < kPhiloxWords; ++i) {
    stored.push_back(getWords(op.getSource(), row + i, chunk));
    scales.push_back(get(op.getScale(), row + i, chunk));
  }
  auto encodeBoth = [&](int64_t e) {
    SmallVector<SmallVector<Value>> numbers;
    for (int64_t i = 0; i < kPhiloxWords; ++i)
      numbers.push_back(unpack(
          ArrayRef(stored[i]).slice(e / step * perColumns, perColumns), type));
    SmallVector<Value> halves(kPhiloxWords);
    for (int64_t k = 0; k < step; ++k) {
      SmallVector<Value> column;
      for (int64_t i = 0; i < kPhiloxWords; ++i)
        column.push_back(b.mulF(numbers[i][k], scales[i].size() == 1
                                                   ? scales[i].front()
                                                   : scales[i][e + k]));
      Value index = b.add(tile.getColumn(chunk), e + k);
      if (spec.isBatched)
        index = b.add(b.mul(tile.batch, tile.numColumns), index);
      for (auto [half, code] : llvm::zip_equal(
               halves, encodeByChance(b, column,
                                      draw(b, seed, index, tile.getRow(row)))))
        half = half ? arith::OrIOp::create(
                          b, half, arith::ShLIOp::create(b, code, b.i32(8)))
                          .getResult()
                    : code;
    }
    return halves;
  };
  for (int64_t e = 0; e < kChunk; e += step) {
    Value inside = b.less(b.add(tile.getColumn(chunk), e), tile.numColumns);
    SmallVector<Value> halves =
        drawApart(inside, kPhiloxWords, [&] { return encodeBoth(e); });
    for (auto [ofRow, half] : llvm::zip_equal(codes, halves)) {
      if (e % 4 == 0)
        ofRow.push_back(half);
      else
        ofRow.back() = arith::OrIOp::create(
            b, ofRow.back(), arith::ShLIOp::create(b, half, b.i32(16)));
    }
  }
  for (auto [i, ofRow] : llvm::enumerate(codes))
    elements[{op.getResult().getAsOpaquePointer(),
              row + static_cast<int64_t>(i), chunk}] = ofRow;
}
