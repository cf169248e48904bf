//===- AttentionBackwardScores.cpp - Products, and what is between them ---===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Attention/Softmax.h"
#include "../Blocks/BulkCopy.h"
#include "AttentionBackwardConsumer.h"
#include "AttentionProducts.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Scores that become powers at a time, so that what becomes of them has their
/// registers.
static constexpr size_t kAtOnce = 8;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void BackwardConsumer::setDescriptors() {
  Value base = launder(b, kernel.base), part = launder(b, group);
  auto at = [&](int64_t offset) { return b.add(base, offset); };
  auto rows = [&](const SharedMatrix &matrix) {
    return b.mul(part, 64 * matrix.width);
  };
  bool hasCodes = memory.hasCodes();
  const SharedMatrix &k = hasCodes ? memory.codesOfK : memory.k;
  const SharedMatrix &q = hasCodes ? memory.codesOfQ : memory.q;
  ofK = k.getDescriptor(
      b, b.add(at(hasCodes ? memory.offsetCodesOfK : memory.offsetK), rows(k)));
  ofQ =
      q.getDescriptor(b, at(hasCodes ? memory.offsetCodesOfQ : memory.offsetQ));
  ofV = memory.v.getDescriptor(b, b.add(at(memory.offsetV), rows(memory.v)));
  ofGrad = memory.grad.getDescriptor(b, at(memory.offsetGrad));
  ofGradRows = memory.grad.getTransposedDescriptor(b, at(memory.offsetGrad));
  ofQRows = memory.q.getTransposedDescriptor(b, at(memory.offsetQ));
  // A warpgroup's part of dQ: half of the columns, or of the queries.
  int64_t columnBoxes = memory.k.getBoxes() / 2;
  ofWholeK = memory.k.getTransposedDescriptor(
      b, tileQ == 64 ? b.add(at(memory.offsetK),
                             b.mul(part, columnBoxes * memory.k.getBoxBytes()))
                     : at(memory.offsetK));
  ofScores = memory.scores.getTransposedDescriptor(
      b, tileQ == 64 ? at(memory.offsetScores)
                     : b.add(at(memory.offsetScores),
                             b.mul(part, memory.scores.getBoxBytes())));
}

/// The product of rows of `a` and of a stage of `matrix`.
static Value multiplyRows(KernelBuilder &b, const WgmmaInstruction &instruction,
                          const SharedMatrix &a, Value ofA,
                          const SharedMatrix &matrix, Value ofB, Value stage) {
  Value product = LLVM::UndefOp::create(b, instruction.getAccumulatorType());
  for (int64_t i = 0, e = a.rowBytes / 32; i < e; ++i)
    product = instruction.multiply(
        b, moveDescriptor(b, ofA, Value(), a, a.getStepBytes(i)),
        moveDescriptor(b, ofB, stage, matrix, matrix.getStepBytes(i)), product,
        /*overwrite=*/i == 0);
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return product;
}

Value BackwardConsumer::multiplyScores(Value stage) {
  bool hasCodes = memory.hasCodes();
  return multiplyRows(b, scoresOf, hasCodes ? memory.codesOfK : memory.k, ofK,
                      hasCodes ? memory.codesOfQ : memory.q, ofQ, stage);
}

Value BackwardConsumer::multiplyGrads(Value stage) {
  return multiplyRows(b, gradsOf, memory.v, ofV, memory.grad, ofGrad, stage);
}

Value BackwardConsumer::addProduct(const WgmmaInstruction &instruction,
                                   ArrayRef<Value> words,
                                   const SharedMatrix &matrix, Value descriptor,
                                   Value stage, ArrayRef<Value> sums) {
  Value accumulator = makeAccumulator(b, sums);
  for (int64_t i = 0; i < tileQ / 16; ++i)
    accumulator = instruction.multiply(
        b, words.slice(4 * i, 4),
        moveDescriptor(b, descriptor, stage, matrix, i * 16 * matrix.width),
        accumulator, /*overwrite=*/false);
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return accumulator;
}

Value BackwardConsumer::multiplyQueries(Value stage) {
  const SharedMatrix &scores = memory.scores, &k = memory.k;
  Value product = LLVM::UndefOp::create(b, toQ.getAccumulatorType());
  for (int64_t i = 0; i < kernel.config.getTileK() / 16; ++i)
    product = toQ.multiply(
        b, moveDescriptor(b, ofScores, stage, scores, i * 16 * scores.width),
        moveDescriptor(b, ofWholeK, Value(), k, i * 16 * k.width), product,
        /*overwrite=*/i == 0);
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return product;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

SmallVector<Value> BackwardConsumer::loadRows(Value stage, int64_t which) {
  auto two = VectorType::get({2}, b.getF32Type());
  Value column = b.mul(b.bitAnd(renewInLoop(kernel.lane), 3), 8);
  Value first = b.offset(kernel.getRows(stage, which), column);
  SmallVector<Value> numbers;
  for (int64_t column = 0; column < tileQ; column += 8) {
    Value pair =
        LLVM::LoadOp::create(b, two, b.offset(first, b.i32(column * 4)),
                             /*alignment=*/8);
    SmallVector<Value> both;
    for (int64_t i : {0, 1})
      both.push_back(LLVM::ExtractElementOp::create(b, pair, b.i32(i)));
    // Both rows of the thread.
    for (int64_t row = 0; row < 2; ++row)
      llvm::append_range(numbers, both);
  }
  return numbers;
}

SmallVector<Value> BackwardConsumer::mask(ArrayRef<Value> scores,
                                          BackwardStep step) {
  Value thread = launder(b, kernel.thread);
  Value row = b.add(b.mul(b.shiftRight(thread, 5), 16),
                    b.shiftRight(b.bitAnd(thread, 31), 2));
  // The thread's first query; all relative to it.
  Value query = b.add(b.mul(step.tile, tileQ), b.mul(b.bitAnd(thread, 3), 2));
  Softmax::Window window;
  for (int64_t half : {0, 1}) {
    Value key = b.add(b.add(tiles.key, row), 8 * half);
    Value own = b.sub(b.sub(key, tiles.diagonal), query);
    Value from = spec.right ? b.sub(own, b.i32(*spec.right)) : b.i32(0);
    // No query sees keys that are not there.
    window.from[half] = b.select(b.less(key, tiles.keys), from, b.i32(1 << 30));
    if (spec.left)
      window.to[half] = b.add(own, *spec.left);
  }
  Value one = b.f32(1.0f);
  return Softmax(b, kFragmentScores, {one, one}, /*logOfP=*/0.0f,
                 /*polynomials=*/0)
      .mask(scores, window);
}

Value BackwardConsumer::findSeen(Value stage) {
  if (!spec.hasKeyRanges)
    return {};
  SmallVector<Value> ends = kernel.loadEnds(stage);
  return b.select(tiles.sees({ends[0], ends[1]}), b.i32(1), b.i32(0));
}

SmallVector<Value> BackwardConsumer::maskByRanges(ArrayRef<Value> scores,
                                                  Value stage) {
  Value thread = launder(b, kernel.thread);
  Value key = b.add(b.mul(b.shiftRight(thread, 5), 16),
                    b.shiftRight(b.bitAnd(thread, 31), 2));
  Value ranges =
      b.offset(kernel.getRows(stage, 2), b.mul(b.bitAnd(thread, 3), 4));
  Value keys[] = {key, b.add(key, 8)}, hidden = b.f32(-kInfinity);
  SmallVector<Value> masked(scores);
  // Two queries at a time have a byte for each end; a thread has two keys.
  for (size_t i = 0; i < scores.size(); i += 4) {
    int64_t column = kFragmentScores.getColumn(static_cast<int64_t>(i));
    Value both = b.load(b.offset(ranges, b.i32(column * 2)), b.getI32Type());
    for (size_t j = 0; j < 4; ++j) {
      auto get = [&](int64_t number) {
        return b.bitAnd(b.shiftRight(both, number * 8), 0xff);
      };
      auto query = static_cast<int64_t>(j % 2);
      Value isSeen =
          b.bitAnd(b.less(keys[j / 2], get(2 * query + 1)),
                   arith::CmpIOp::create(b, arith::CmpIPredicate::uge,
                                         keys[j / 2], get(2 * query)));
      masked[i + j] = b.select(isSeen, scores[i + j], hidden);
    }
  }
  return masked;
}

SmallVector<Value> BackwardConsumer::exponentiate(ArrayRef<Value> scores,
                                                  BackwardStep step,
                                                  Value stage,
                                                  ArrayRef<Value> dropped,
                                                  SmallVector<Value> &slopes) {
  SmallVector<Value> visible = b.choose(
      hidesSome(kernel, step, stage),
      [&] {
        return spec.hasKeyRanges ? maskByRanges(scores, stage)
                                 : mask(scores, step);
      },
      [&] { return SmallVector<Value>(scores); });
  SmallVector<Value> offsets = loadRows(stage, 0);
  if (cap)
    return exponentiateBent(visible, offsets, dropped, slopes);
  if (dropout)
    return exponentiateSome(visible, offsets, dropped);
  SmallVector<Value> powers;
  for (auto [score, offset] : llvm::zip_equal(visible, offsets))
    powers.push_back(
        Softmax::exp2(b, LLVM::FMAOp::create(b, b.getF32Type(), score,
                                             exponentFactor, offset)));
  return packFragment(b, spec.grad, powers);
}

SmallVector<Value> BackwardConsumer::drawDropped(BackwardStep step) {
  SmallVector<Value> words;
  if (!dropout)
    return words;
  Value thread = launder(b, kernel.thread), lane = b.bitAnd(thread, 31);
  // Groups are of 16 keys, those of a warp, and of 16 queries.
  Value ofKeys = b.add(
      b.mul(b.add(b.shiftRight(tiles.key, 4), b.shiftRight(thread, 5)), 4),
      b.shiftRight(lane, 3));
  Value ofQueries = b.mul(step.tile, tileQ / 16);
  Value head = b.add(b.mul(tiles.batch, spec.heads), step.head);
  for (int64_t i = 0; i < tileQ / 16; ++i) {
    if (i % 4 == 0)
      words.push_back(b.i32(0));
    auto kept = dropout->areKept(lane, ofKeys, b.add(ofQueries, i), head);
    for (auto [place, isKept] : llvm::enumerate(kept)) {
      auto bit = int64_t(1) << (8 * (i % 4) + static_cast<int64_t>(place));
      words.back() =
          b.select(isKept, words.back(),
                   arith::OrIOp::create(b, words.back(), b.i32(int32_t(bit))));
    }
  }
  return pinHere(b, words);
}

void BackwardConsumer::drop(MutableArrayRef<Value> powers, size_t first,
                            ArrayRef<Value> dropped) {
  if (!dropout)
    return;
  Value word = dropped[first / 32];
  for (auto [i, power] : llvm::enumerate(powers)) {
    auto bit = int64_t(1) << (first + i) % 32;
    power = b.select(b.equal(b.bitAnd(word, int32_t(bit)), 0), power,
                     arith::NegFOp::create(b, power));
  }
}

SmallVector<Value> BackwardConsumer::exponentiateSome(ArrayRef<Value> scores,
                                                      ArrayRef<Value> offsets,
                                                      ArrayRef<Value> dropped) {
  SmallVector<Value> words;
  for (size_t first = 0; first < scores.size(); first += kAtOnce) {
    SmallVector<Value> powers;
    for (size_t i = first; i < first + kAtOnce; ++i)
      powers.push_back(
          Softmax::exp2(b, LLVM::FMAOp::create(b, b.getF32Type(), scores[i],
                                               exponentFactor, offsets[i])));
    drop(powers, first, dropped);
    llvm::append_range(words, packFragment(b, spec.grad, powers));
  }
  return words;
}

SmallVector<Value> BackwardConsumer::exponentiateBent(
    ArrayRef<Value> scores, ArrayRef<Value> offsets, ArrayRef<Value> dropped,
    SmallVector<Value> &slopes) {
  SmallVector<Value> words;
  for (size_t first = 0; first < scores.size(); first += kAtOnce) {
    SmallVector<Value> powers, parts;
    for (size_t i = first; i < first + kAtOnce; ++i) {
      Value share, bent = cap->bend(scores[i], &share);
      parts.push_back(cap->getSlope(share));
      Value power =
          Softmax::exp2(b, arith::AddFOp::create(b, bent, offsets[i]));
      // A cap is as far as a hidden score bends.
      Value isHidden = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ,
                                             scores[i], b.f32(-kInfinity));
      powers.push_back(b.select(isHidden, b.f32(0.0f), power));
    }
    drop(powers, first, dropped);
    llvm::append_range(words, packFragment(b, spec.grad, powers));
    llvm::append_range(slopes, packFragment(b, spec.grad, parts));
  }
  return words;
}

SmallVector<Value> BackwardConsumer::differentiate(ArrayRef<Value> p,
                                                   ArrayRef<Value> slopes,
                                                   ArrayRef<Value> products,
                                                   Value stage) {
  SmallVector<Value> grads;
  for (auto [power, product, delta] : llvm::zip_equal(
           unpackFragment(b, spec.grad, p), products, loadRows(stage, 1)))
    grads.push_back(SoftmaxGradient::differentiate(power, product, delta));
  return packGrads(grads, slopes);
}

SmallVector<Value> BackwardConsumer::renew(ArrayRef<Value> words) {
  SmallVector<Value> renewed;
  for (Value word : words)
    renewed.push_back(b.bitXor(word, zero));
  return renewed;
}

SmallVector<Value> BackwardConsumer::renewKept(ArrayRef<Value> words) {
  auto pair = VectorType::get({2}, spec.grad);
  Value zeros = LLVM::BitcastOp::create(b, pair, zero);
  SmallVector<Value> kept;
  for (Value word : words) {
    Value both = LLVM::BitcastOp::create(b, pair, word);
    kept.push_back(LLVM::BitcastOp::create(
        b, b.getI32Type(), arith::MaximumFOp::create(b, both, zeros)));
  }
  return kept;
}

void BackwardConsumer::leave(ArrayRef<Value> words, Value stage) {
  const SharedMatrix &scores = memory.scores;
  Value thread = renewInLoop(kernel.thread);
  storeFragment(b, words, scores, kernel.shared,
                kernel.getPlace(scores, memory.offsetScores, stage),
                b.mul(b.shiftRight(thread, 5), 16), b.bitAnd(thread, 31));
  fenceForBulkCopies(b);
}

void BackwardConsumer::announce(Value stage) {
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  Ring ring = kernel.scores;
  ring.release(stage, kernel.lane);
}
