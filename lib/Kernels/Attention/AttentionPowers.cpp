//===- AttentionPowers.cpp - Powers of scores as an operand ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionPowers.h"
#include "../Blocks/Hazards.h"
#include "../Blocks/Rounding.h"

using namespace mlir;
using namespace mlir::fp8;

static bool areCodes(Type type) { return type.getIntOrFloatBitWidth() == 8; }

SmallVector<Value> fp8::roundPowers(KernelBuilder &b, Type type,
                                    ArrayRef<Value> powers) {
  if (!areCodes(type))
    return SmallVector<Value>(powers);
  SmallVector<Value> pairs;
  for (size_t i = 0; i < powers.size(); i += 2)
    pairs.push_back(NVVM::ConvertF32x2ToF8x2Op::create(
        b, b.getI16Type(), powers[i + 1], powers[i], NVVM::FPRoundingMode::RN,
        NVVM::SaturationMode::SATFINITE, /*relu=*/false, type));
  return pairs;
}

SmallVector<Value> fp8::packPowers(KernelBuilder &b, Type type,
                                   ArrayRef<Value> rounded) {
  if (!areCodes(type))
    return packFragment(b, type, rounded);
  SmallVector<Value> words;
  // Words of an operand: rows 0 and 8 of the first half of K, then of the
  // second; the accumulators have rows 0 and 8 of each 8 columns.
  auto halves = VectorType::get({2}, b.getI16Type());
  for (size_t first = 0; first < rounded.size(); first += 8)
    for (size_t half : {0, 4})
      for (size_t row : {0, 1}) {
        Value word = LLVM::UndefOp::create(b, halves);
        for (size_t i : {0, 1})
          word = LLVM::InsertElementOp::create(
              b, word, rounded[first + half + row + 2 * i], b.i32(i));
        words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), word));
      }
  return words;
}

SmallVector<Value>
fp8::dropPowers(const AttentionBlock &kernel,
                const std::optional<AttentionDropout> &dropout,
                const AttentionTile &tile, Value number,
                ArrayRef<Value> powers) {
  if (!dropout)
    return SmallVector<Value>(powers);
  KernelBuilder &b = kernel.b;
  // What is computed of it would be in registers all through the loop.
  Value thread = launder(b, kernel.thread);
  Value head = b.add(b.mul(tile.batch, kernel.spec.heads), tile.head);
  Value ofQueries = b.add(b.shiftRight(tile.query, 4), b.shiftRight(thread, 5));
  SmallVector<Value> kept;
  for (size_t first = 0; first < powers.size(); first += 8) {
    Value ofKeys = b.add(b.mul(number, kernel.tileK / 16),
                         static_cast<int64_t>(first / 8));
    auto areKept =
        dropout->areKeptOfRows(b.bitAnd(thread, 31), ofKeys, ofQueries, head);
    for (auto [power, isKept] :
         llvm::zip_equal(powers.slice(first, 8), areKept))
      kept.push_back(b.select(isKept, power, b.f32(0.0f)));
  }
  return kept;
}
