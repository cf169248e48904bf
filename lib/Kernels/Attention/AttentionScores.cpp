//===- AttentionScores.cpp - Scores before their softmax ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionScores.h"
#include "../Blocks/Hazards.h"
#include "Softmax.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();
static constexpr float kLog2E = 0x1.715476p0f;

//===----------------------------------------------------------------------===//
// Caps
//===----------------------------------------------------------------------===//

Cap::Cap(KernelBuilder &b, float cap, Value factor)
    : b(b), most(cap * kLog2E), factor(b.mulF(factor, b.f32(2.0f / cap))) {}

// tanh x = 1 - 2 / (1 + exp(2 x)): three ulps of 1 where `tanh.approx` has
// 2^-11. What overflows is 1, and what underflows -1.
Value Cap::bend(Value score, Value *share) const {
  Value power = Softmax::exp2(b, b.mulF(score, factor));
  Value part =
      LLVM::CallIntrinsicOp::create(
          b, b.getF32Type(), b.getStringAttr("llvm.nvvm.rcp.approx.ftz.f"),
          ValueRange{arith::AddFOp::create(b, power, b.f32(1.0f))})
          .getResult(0);
  if (share)
    *share = part;
  return LLVM::FMAOp::create(b, b.getF32Type(), part, b.f32(-2.0f * most),
                             b.f32(most));
}

Value Cap::getSlope(Value share) const {
  Value four = b.mulF(share, b.f32(4.0f));
  return LLVM::FMAOp::create(b, b.getF32Type(), arith::NegFOp::create(b, four),
                             share, four);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

AttentionScores::AttentionScores(const AttentionBlock &kernel,
                                 ScoreLayout layout, const AttentionTile &tile,
                                 const Value (&factors)[2],
                                 ArrayRef<AttentionRow> rows)
    : kernel(kernel), b(kernel.b), spec(kernel.spec), layout(layout),
      origin(tile.origin), factors{factors[0], factors[1]} {
  if (!spec.mask)
    return;
  Value pointer = kernel.getParam("mask.ptr");
  // Bits that are 0 where all rows begin at pairs, and have a whole number.
  Value odd = b.bitAnd(kernel.getParam("keys"), 1);
  for (int64_t dim : {0, 1, 2})
    if (!spec.isMaskShared[dim])
      odd = arith::OrIOp::create(
          b, odd,
          arith::TruncIOp::create(
              b, b.getI32Type(),
              kernel.getParam("mask.stride" + std::to_string(dim))));
  Value address = LLVM::PtrToIntOp::create(b, b.getI64Type(), pointer);
  address = arith::TruncIOp::create(b, b.getI32Type(), address);
  if (origin)
    odd = arith::OrIOp::create(b, odd, origin);
  int64_t bytes = std::max(spec.mask.getIntOrFloatBitWidth() / 8, 1u);
  arePairs = b.equal(
      arith::OrIOp::create(b, b.bitAnd(odd, 1), b.bitAnd(address, bytes)), 0);
  for (auto [place, row] : llvm::zip(places, rows)) {
    Value index = b.i64(0);
    for (auto [dim, number] :
         llvm::enumerate(std::array{tile.batch, row.head, row.query})) {
      if (spec.isMaskShared[dim])
        continue;
      Value stride = kernel.getParam("mask.stride" + std::to_string(dim));
      index = b.add(index, b.mul(b.widen(number), stride));
    }
    place = b.element(pointer, index, spec.mask);
  }
}

Value AttentionScores::finish(Value element) const {
  if (spec.mask.isInteger(1))
    return arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, element,
        arith::ConstantOp::create(b, b.getI8IntegerAttr(0)));
  return spec.mask.isF32()
             ? element
             : arith::ExtFOp::create(b, b.getF32Type(), element).getResult();
}

Value AttentionScores::add(Value element, Value score) const {
  if (!spec.hasAddedMask())
    return b.select(element, score, b.f32(-kInfinity));
  Value sum =
      LLVM::FMAOp::create(b, b.getF32Type(), element, b.f32(kLog2E), score);
  // A row of nothing but the least of all numbers has the mean of the values,
  // one of -inf has none.
  Value least = b.f32(std::numeric_limits<float>::lowest());
  Value hidden = b.f32(-kInfinity);
  Value isHidden =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, element, hidden);
  return b.select(isHidden, hidden,
                  arith::MaxNumFOp::create(b, sum, least).getResult());
}

std::pair<Value, Value> AttentionScores::loadPair(int64_t row, Value key,
                                                  Value next) const {
  Type stored = spec.mask.isInteger(1) ? b.getI8Type() : spec.mask;
  Value place = b.element(places[row], b.widen(key), spec.mask);
  if (next) {
    Value other = b.element(places[row], b.widen(next), spec.mask);
    return {finish(b.loadConstant(place, stored)),
            finish(b.loadConstant(other, stored))};
  }
  Value both = b.loadConstant(place, VectorType::get({2}, stored));
  auto get = [&](int64_t i) {
    return finish(LLVM::ExtractElementOp::create(b, both, b.i32(i)));
  };
  return {get(0), get(1)};
}

SmallVector<Value> AttentionScores::applyMask(ArrayRef<Value> scores,
                                              Value number, bool isLast,
                                              bool inPairs) const {
  // Kept in registers all through the loop over keys, it would be for this.
  Value column = layout.getFirstColumn(b, launder(b, kernel.thread));
  Value first = b.add(b.mul(number, kernel.tileK), column);
  if (origin)
    first = b.add(first, origin);
  Value keys = kernel.getParam("keys");
  auto clamp = [&](Value key, int64_t count) {
    return isLast ? b.min(key, b.sub(keys, b.i32(count))) : key;
  };
  // Rows that share their elements load them once.
  bool areAlike = spec.isMaskShared[1] && spec.isMaskShared[2];
  SmallVector<Value> masked(scores);
  size_t together = 2 * layout.rows;
  for (size_t i = 0; i < scores.size(); i += together) {
    Value key = b.add(first, layout.getColumn(static_cast<int64_t>(i)));
    auto load = [&](int64_t row) {
      return inPairs ? loadPair(row, clamp(key, 2), Value())
                     : loadPair(row, clamp(key, 1), clamp(b.add(key, 1), 1));
    };
    std::pair<Value, Value> pairs[2];
    pairs[0] = load(0);
    if (layout.rows == 2)
      pairs[1] = areAlike ? pairs[0] : load(1);
    for (size_t j = 0; j < together; ++j) {
      auto [even, odd] = pairs[j / 2];
      masked[i + j] = add(j % 2 ? odd : even, scores[i + j]);
    }
  }
  return masked;
}

SmallVector<Value>
AttentionScores::applyMaskOfRows(ArrayRef<Value> scores) const {
  Type stored = spec.mask.isInteger(1) ? b.getI8Type() : spec.mask;
  Value elements[2];
  for (int64_t row = 0; row < layout.rows; ++row)
    elements[row] = finish(b.loadConstant(places[row], stored));
  SmallVector<Value> masked;
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value element = elements[layout.getRow(static_cast<int64_t>(i))];
    masked.push_back(add(element, score));
  }
  return masked;
}

SmallVector<Value> AttentionScores::apply(ArrayRef<Value> scores, Value number,
                                          bool isLast) const {
  SmallVector<Value> applied(scores);
  if (spec.cap) {
    SmallVector<Cap> caps;
    for (int64_t row = 0; row < layout.rows; ++row)
      caps.emplace_back(b, *spec.cap, factors[row]);
    for (auto [i, score] : llvm::enumerate(applied))
      score = caps[layout.getRow(static_cast<int64_t>(i))].bend(score);
  } else if (spec.hasAddedMask()) {
    applied = Softmax::scaleRows(b, layout, scores, factors);
  }
  if (!spec.mask)
    return applied;
  auto applyAll = [&] {
    if (spec.isMaskShared[3])
      return applyMaskOfRows(applied);
    return b.choose(
        arePairs,
        [&] { return applyMask(applied, number, isLast, /*inPairs=*/true); },
        [&] { return applyMask(applied, number, isLast, /*inPairs=*/false); });
  };
  if (!isLast)
    return applyAll();
  // Without keys it has no elements.
  return b.choose(b.less(b.i32(0), kernel.getParam("keys")), applyAll,
                  [&] { return applied; });
}
