//===- AttentionTilePowers.cpp - Powers without maxima --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTilePowers.h"
#include "../Attention/AttentionPowers.h"
#include "../Blocks/Hazards.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Words (i32), one of each row, that are not 0 if one of its powers is NaN or
/// too large: rounds to the largest code or, in 16 bits, to 2.
static std::array<Value, 2> findLarge(KernelBuilder &b, FloatType type,
                                      ArrayRef<Value> words) {
  // Powers have no sign. 16 bits from 2 on have the next bit; codes set theirs
  // with what is missing to it from the largest one on.
  bool areCodes = type.getWidth() == 8;
  uint64_t largest = llvm::APFloat::getLargest(type.getFloatSemantics())
                         .bitcastToAPInt()
                         .getZExtValue();
  int64_t missing = static_cast<int64_t>(0x01010101 * (0x80 - largest));
  Value found[2];
  for (auto [i, word] : llvm::enumerate(words)) {
    Value large = areCodes ? b.add(word, missing) : word;
    Value &row = found[i % 2];
    row = row ? arith::OrIOp::create(b, row, large).getResult() : large;
  }
  int64_t bits = areCodes ? 0x80808080 : 0x40004000;
  return {b.bitAnd(found[0], bits), b.bitAnd(found[1], bits)};
}

int64_t sm90::getMarginOfMaxima(Type type) {
  return type.isBF16() ? 64 : type.isF16() ? 4 : 2;
}

/// Whether a lane that shares a row with this one has `flag` (i32) set.
static Value isSetInRow(const AttentionContext &kernel, Value flag) {
  KernelBuilder &b = kernel.b;
  Value isSet =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, flag, b.i32(0));
  Value votes = NVVM::VoteSyncOp::create(b, b.getI32Type(), b.i32(-1), isSet,
                                         NVVM::VoteSyncKind::ballot);
  Value ofRow = arith::ShRUIOp::create(b, votes, b.bitAnd(kernel.lane, 28));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, b.bitAnd(ofRow, 15),
                               b.i32(0));
}

TilePowers sm90::computeTilePowers(const AttentionContext &kernel,
                                   Softmax &softmax, const Value (&factors)[2],
                                   ArrayRef<Value> scores,
                                   const Softmax::Rows &rows, Value zero) {
  KernelBuilder &b = kernel.b;
  auto type = cast<FloatType>(kernel.spec.v);
  auto makeWords = [&](ArrayRef<Value> powers) {
    return packPowers(b, type, roundPowers(b, type, powers));
  };
  Softmax::Step kept;
  for (int64_t row : {0, 1}) {
    kept.corrections[row] = b.f32(1.0f);
    // Rows that have seen no key have an infinite one, by which all powers are
    // too large, or NaN.
    kept.offsets[row] = LLVM::FMAOp::create(
        b, b.getF32Type(), arith::NegFOp::create(b, rows.max[row]),
        factors[row], b.f32(softmax.getLogOfP()));
  }
  if (zero)
    kept.addBits(b, zero);
  TilePowers made;
  made.rows = rows;
  made.words = makeWords(
      softmax.exponentiate(scores, made.rows, kept, /*mayBeLarge=*/true));
  // LLVM would compute sums where they are used, behind the branch, and have
  // all powers in registers until then.
  SmallVector<Value> sums = pinHere(b, made.rows.sum);
  llvm::copy(sums, made.rows.sum);
  std::array<Value, 2> large = findLarge(b, type, made.words);
  Value isLarge = arith::CmpIOp::create(
      b, arith::CmpIPredicate::ne, arith::OrIOp::create(b, large[0], large[1]),
      b.i32(0));
  made.areRaised = NVVM::VoteSyncOp::create(b, b.getI1Type(), b.i32(-1),
                                            isLarge, NVVM::VoteSyncKind::any);
  auto list = [](const TilePowers &powers) {
    SmallVector<Value> values(powers.words);
    for (int64_t row : {0, 1})
      llvm::append_range(values,
                         ArrayRef{powers.rows.max[row], powers.rows.sum[row],
                                  powers.corrections[row]});
    return values;
  };
  auto raise = [&] {
    TilePowers raised;
    Softmax::Rows all = rows;
    Softmax::Step step = softmax.raise(scores, all);
    raised.rows = rows;
    for (int64_t row : {0, 1}) {
      Value isRaised = isSetInRow(kernel, large[row]);
      auto select = [&](Value ofRaised, Value ofOthers) {
        return b.select(isRaised, ofRaised, ofOthers);
      };
      raised.rows.max[row] = select(all.max[row], rows.max[row]);
      step.offsets[row] = select(step.offsets[row], kept.offsets[row]);
      step.corrections[row] =
          select(step.corrections[row], kept.corrections[row]);
      raised.corrections[row] = step.corrections[row];
    }
    raised.words = makeWords(softmax.exponentiate(scores, raised.rows, step));
    return list(raised);
  };
  llvm::copy(kept.corrections, made.corrections);
  SmallVector<Value> chosen =
      b.choose(made.areRaised, raise, [&] { return list(made); });
  size_t count = made.words.size();
  made.words.assign(chosen.begin(), chosen.begin() + count);
  for (int64_t row : {0, 1}) {
    made.rows.max[row] = chosen[count + 3 * row];
    made.rows.sum[row] = chosen[count + 3 * row + 1];
    made.corrections[row] = chosen[count + 3 * row + 2];
  }
  return made;
}
