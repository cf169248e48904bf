//===- AttentionBackwardScores.cpp - What is between its products ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Attention/AttentionRows.h"
#include "../Blocks/Hazards.h"
#include "../Blocks/Rounding.h"
#include "AttentionBackwardWorker.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

//===----------------------------------------------------------------------===//
// Numbers of queries
//===----------------------------------------------------------------------===//

/// All exponentials of a query that sees nothing are 0.
Value BackwardWorker::makeExponent(Value lse) const {
  constexpr float kLog2E = 0x1.715476p0f;
  Value seesNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, lse,
                                         b.f32(-kInfinity));
  return b.select(seesNone, b.f32(-kInfinity), b.mulF(lse, b.f32(-kLog2E)));
}

void BackwardWorker::loadRows() {
  Type f32 = b.getF32Type();
  Value head = b.add(b.mul(tiles.batch, spec.heads), headOfRows);
  Value base = b.mul(b.widen(head), b.widen(tiles.queries));
  Value first = b.add(firstRow, kFragmentScores.getFirstRow(b, kernel.thread));
  for (int64_t half : {0, 1}) {
    Value query = b.add(first, 8 * half);
    Value isThere = b.less(query, tiles.queries);
    Value index = b.add(base, b.widen(b.select(isThere, query, b.i32(0))));
    auto read = [&](StringRef name) {
      return b.loadConstant(b.element(kernel.getParam(name), index, f32), f32);
    };
    exponents[half] =
        b.select(isThere, makeExponent(read("lse.ptr")), b.f32(-kInfinity));
    deltas[half] = read("delta.ptr");
    if (spec.hasKeyRanges)
      ranges[half] = tiles.loadRange(query);
  }
}

SmallVector<Value>
BackwardWorker::loadNumbers(Value stage, int64_t which,
                            llvm::function_ref<Value(Value)> change) {
  auto two = VectorType::get({2}, b.getF32Type());
  Value column = b.mul(b.bitAnd(kernel.lane, 3), 8);
  Value first = b.offset(getNumbers(stage, which), column);
  SmallVector<Value> numbers;
  for (int64_t column = 0; column < kernel.config.getTileK(); column += 8) {
    Value pair =
        LLVM::LoadOp::create(b, two, b.offset(first, b.i32(column * 4)),
                             /*alignment=*/8);
    SmallVector<Value> both;
    for (int64_t i : {0, 1})
      both.push_back(change(LLVM::ExtractElementOp::create(b, pair, b.i32(i))));
    // Both rows of the thread.
    for (int64_t row = 0; row < 2; ++row)
      llvm::append_range(numbers, both);
  }
  return numbers;
}

static SmallVector<Value> repeatRows(const Value (&ofRows)[2], int64_t count) {
  SmallVector<Value> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(ofRows[kFragmentScores.getRow(i)]);
  return numbers;
}

SmallVector<Value> BackwardWorker::getExponents(Value stage) {
  if (!part.ofKeys)
    return repeatRows(exponents, kernel.config.getTileK() / 2);
  return loadNumbers(stage, 0, [&](Value lse) { return makeExponent(lse); });
}

SmallVector<Value> BackwardWorker::getDeltas(Value stage) {
  if (!part.ofKeys)
    return repeatRows(deltas, kernel.config.getTileK() / 2);
  return loadNumbers(stage, 1, [](Value delta) { return delta; });
}

//===----------------------------------------------------------------------===//
// What queries see
//===----------------------------------------------------------------------===//

Value BackwardWorker::hides(Step step) const {
  Value row = b.add(firstRow, b.mul(kernel.warp, 16)), column = getColumn(step);
  Value query = part.ofKeys ? column : row, key = part.ofKeys ? row : column;
  int64_t queries = part.ofKeys ? kernel.config.getTileK() : 16;
  int64_t keys = part.ofKeys ? 16 : kernel.config.getTileK();
  Value own = b.add(query, tiles.diagonal);
  Value hidden;
  auto addOne = [&](Value lhs, Value rhs) {
    Value condition = isBefore(b, lhs, rhs);
    hidden = hidden ? arith::OrIOp::create(b, hidden, condition).getResult()
                    : condition;
  };
  // Rows that are not there are not stored.
  if (!part.ofKeys)
    addOne(tiles.keys, b.add(key, keys));
  if (spec.right)
    addOne(b.add(own, *spec.right), b.add(key, keys - 1));
  if (spec.left)
    addOne(key, b.sub(b.add(own, queries - 1), b.i32(*spec.left)));
  return hidden;
}

SmallVector<Value> BackwardWorker::maskByWindow(ArrayRef<Value> scores,
                                                Step step) {
  Value thread = launder(b, kernel.thread);
  Value row = b.add(firstRow, kFragmentScores.getFirstRow(b, thread));
  // The thread's first column; all relative to it.
  Value column =
      b.add(getColumn(step), kFragmentScores.getFirstColumn(b, thread));
  Softmax::Window window;
  for (int64_t half : {0, 1}) {
    Value own = b.sub(b.add(row, 8 * half), column);
    if (part.ofKeys) {
      // Which queries see a key.
      own = b.sub(own, tiles.diagonal);
      if (spec.right)
        window.from[half] = b.sub(own, b.i32(*spec.right));
      if (spec.left)
        window.to[half] = b.add(own, *spec.left);
      continue;
    }
    if (spec.hasKeyRanges) {
      window.from[half] = b.sub(ranges[half].begin, column);
      window.to[half] = b.sub(b.sub(ranges[half].end, b.i32(1)), column);
      continue;
    }
    own = b.add(own, tiles.diagonal);
    if (spec.left)
      window.from[half] = b.sub(own, b.i32(*spec.left));
    window.to[half] = b.sub(b.sub(tiles.keys, b.i32(1)), column);
    if (spec.right)
      window.to[half] = b.createOrFold<arith::MinSIOp>(window.to[half],
                                                       b.add(own, *spec.right));
  }
  Value one = b.f32(1.0f);
  return Softmax(b, kFragmentScores, {one, one}, /*logOfP=*/0.0f,
                 /*polynomials=*/0)
      .mask(scores, window);
}

SmallVector<Value> BackwardWorker::maskByRanges(ArrayRef<Value> scores,
                                                Value stage) {
  Type i32 = b.getI32Type();
  auto toInt = [&](Value bits) -> Value {
    return LLVM::BitcastOp::create(b, i32, bits);
  };
  SmallVector<Value> begins = loadNumbers(stage, 2, toInt);
  SmallVector<Value> ends = loadNumbers(stage, 3, toInt);
  Value key = b.add(firstRow,
                    kFragmentScores.getFirstRow(b, launder(b, kernel.thread)));
  Value keys[] = {key, b.add(key, 8)};
  SmallVector<Value> masked(scores);
  for (auto [i, score] : llvm::enumerate(masked)) {
    Value own = keys[kFragmentScores.getRow(static_cast<int64_t>(i))];
    Value isSeen = b.bitAnd(isBefore(b, own, ends[i]),
                            b.bitXor(isBefore(b, own, begins[i]), b.i1(true)));
    score = b.select(isSeen, score, b.f32(-kInfinity));
  }
  return masked;
}

SmallVector<Value> BackwardWorker::mask(ArrayRef<Value> scores, Step step,
                                        Value stage) {
  bool hasWindow = spec.left || spec.right;
  SmallVector<Value> masked(scores);
  if (spec.hasKeyRanges) {
    if (part.ofKeys)
      masked = maskByRanges(masked, stage);
    if (!part.ofKeys || hasWindow)
      masked = maskByWindow(masked, step);
    return masked;
  }
  if (part.ofKeys && !hasWindow)
    return masked;
  return b.choose(
      hides(step), [&] { return maskByWindow(scores, step); },
      [&] { return SmallVector<Value>(scores); });
}

//===----------------------------------------------------------------------===//
// Powers, and gradients of scores
//===----------------------------------------------------------------------===//

void BackwardWorker::drop(MutableArrayRef<Value> powers, Step step) const {
  Value thread = launder(b, kernel.thread), lane = b.bitAnd(thread, 31);
  // Groups of 16 rows, those of a warp, and of 16 columns.
  Value ofRows = b.add(b.shiftRight(firstRow, 4), b.shiftRight(thread, 5));
  Value ofColumns = b.mul(step.tile, kernel.config.getTileK() / 16);
  Value head = b.add(b.mul(tiles.batch, spec.heads), step.head);
  for (size_t first = 0; first < powers.size(); first += 8) {
    Value own = b.add(ofColumns, static_cast<int64_t>(first / 8));
    SmallVector<Value> kept =
        part.ofKeys
            ? dropout->areKept(lane,
                               b.add(b.mul(ofRows, 4), b.shiftRight(lane, 3)),
                               own, head)
            : dropout->areKeptOfRows(lane, own, ofRows, head);
    for (auto [power, isKept] : llvm::zip_equal(powers.slice(first, 8), kept))
      power = b.select(isKept, power, arith::NegFOp::create(b, power));
  }
}

SmallVector<Value> BackwardWorker::exponentiate(ArrayRef<Value> scores,
                                                Step step, Value stage,
                                                SmallVector<Value> &slopes) {
  SmallVector<Value> powers;
  for (auto [score, offset] : llvm::zip_equal(scores, getExponents(stage))) {
    if (!cap) {
      powers.push_back(
          Softmax::exp2(b, LLVM::FMAOp::create(b, b.getF32Type(), score,
                                               exponentFactor, offset)));
      continue;
    }
    Value share, bent = cap->bend(score, &share);
    slopes.push_back(cap->getSlope(share));
    Value power = Softmax::exp2(b, arith::AddFOp::create(b, bent, offset));
    // A cap is as far as a hidden score bends.
    Value isHidden = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, score,
                                           b.f32(-kInfinity));
    powers.push_back(b.select(isHidden, b.f32(0.0f), power));
  }
  slopes = packFragment(b, spec.grad, slopes);
  if (dropout)
    drop(powers, step);
  return packFragment(b, spec.grad, powers);
}

SmallVector<Value> BackwardWorker::getKept(ArrayRef<Value> words) const {
  if (!dropout)
    return SmallVector<Value>(words);
  auto pair = VectorType::get({2}, spec.grad);
  Value zeros = LLVM::BitcastOp::create(b, pair, b.i32(0));
  SmallVector<Value> kept;
  for (Value word : words) {
    Value both = LLVM::BitcastOp::create(b, pair, word);
    kept.push_back(LLVM::BitcastOp::create(
        b, b.getI32Type(), arith::MaximumFOp::create(b, both, zeros)));
  }
  return kept;
}

SmallVector<Value> BackwardWorker::differentiate(ArrayRef<Value> p,
                                                 ArrayRef<Value> slopes,
                                                 ArrayRef<Value> products,
                                                 Value stage) {
  SmallVector<Value> grads;
  for (auto [power, product, delta] : llvm::zip_equal(
           unpackFragment(b, spec.grad, p), products, getDeltas(stage)))
    grads.push_back(SoftmaxGradient::differentiate(
        power, product, arith::NegFOp::create(b, delta)));
  return packGrads(grads, slopes);
}
