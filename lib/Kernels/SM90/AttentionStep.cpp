//===- AttentionStep.cpp - A tile of keys in attention --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Blocks/BulkCopy.h"
#include "../Blocks/Hazards.h"
#include "AttentionConsumer.h"
#include "AttentionTilePowers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// `descriptor` moved by a stage, and a number of bytes.
static Value moveDescriptor(KernelBuilder &b, Value descriptor, Value stage,
                            const SharedMatrix &matrix, int64_t bytes) {
  int64_t stageBytes = llvm::alignTo(matrix.getBytes(), 1024);
  Value distance = b.add(b.mul(stage, stageBytes >> 4), bytes >> 4);
  return b.add(descriptor, b.widen(distance));
}

Value AttentionConsumer::multiplyQK(Value stage) {
  Value scores = LLVM::UndefOp::create(b, qk.getAccumulatorType());
  for (int64_t i = 0, e = memory.q.rowBytes / 32; i < e; ++i) {
    Value a = b.add(descriptorQ, b.i64(memory.q.getStepBytes(i) >> 4));
    Value otherB = moveDescriptor(b, descriptorK, stage, memory.k,
                                  memory.k.getStepBytes(i));
    scores = qk.multiply(b, a, otherB, scores, /*overwrite=*/i == 0);
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return scores;
}

Value AttentionConsumer::multiplyPV(ArrayRef<Value> p, Value stage,
                                    Value accumulator, bool overwrite) {
  for (int64_t i = 0, e = static_cast<int64_t>(p.size()) / 4; i < e; ++i) {
    int64_t bytes =
        pv.transposedB ? i * pv.getK() * values.width : values.getStepBytes(i);
    Value descriptor = moveDescriptor(b, descriptorV, stage, values, bytes);
    accumulator = pv.multiply(b, p.slice(4 * i, 4), descriptor, accumulator,
                              overwrite && i == 0);
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return accumulator;
}

SmallVector<Value> AttentionConsumer::getRegisters(Value accumulator,
                                                   int64_t count) {
  SmallVector<Value> registers;
  for (int64_t i = 0; i < count; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, accumulator, i));
  return registers;
}

Value AttentionConsumer::getAccumulator(ArrayRef<Value> registers) {
  Value accumulator = LLVM::UndefOp::create(b, pv.getAccumulatorType());
  for (auto [i, value] : llvm::enumerate(registers))
    accumulator =
        LLVM::InsertValueOp::create(b, accumulator, value, int64_t(i));
  return accumulator;
}

SmallVector<Value> AttentionConsumer::round(ArrayRef<Value> powers) {
  return roundPowers(b, spec.v, powers);
}

SmallVector<Value> AttentionConsumer::drop(const AttentionTile &tile,
                                           Value number,
                                           ArrayRef<Value> powers) {
  return dropPowers(kernel, dropout, tile, number, powers);
}

SmallVector<Value> AttentionConsumer::pack(ArrayRef<Value> rounded) {
  return packPowers(b, spec.v, rounded);
}

//===----------------------------------------------------------------------===//
// A tile of keys
//===----------------------------------------------------------------------===//

void AttentionConsumer::waitForTurn() {
  if (takesTurns())
    b.namedBarrier(b.add(group, kFirstTurn), 256);
}

void AttentionConsumer::giveTurn(AttentionTurn when) {
  if (!takesTurns() || config.getTurn() != when)
    return;
  Value next = b.add(group, 1);
  next = b.select(b.equal(next, config.getConsumers()), b.i32(0), next);
  b.namedBarrierArrive(b.add(next, kFirstTurn), 256);
}

Value AttentionConsumer::loadZeroBehindTurn() {
  return LLVM::LoadOp::create(b, b.getI32Type(),
                              b.offset(kernel.shared, b.i32(memory.offsetFlag)),
                              /*alignment=*/4, /*isVolatile=*/true);
}

void AttentionConsumer::giveTurnBeforePowers(Softmax::Step &step) {
  if (!takesTurns() || config.getTurn() != AttentionTurn::Raised)
    return;
  giveTurn(AttentionTurn::Raised);
  step.addBits(b, loadZeroBehindTurn());
}

void AttentionConsumer::hideValues(
    RingPosition at, Value hides,
    llvm::function_ref<Value(Value row)> isHidden) {
  int64_t threads = 128 * config.getConsumers();
  b.ifThen(hides, [&] {
    ringOfV.waitFull(at);
    hideRows(kernel, memory.v,
             kernel.getPlace(memory.v, memory.offsetV, at.stage), threads,
             isHidden);
    fenceForBulkCopies(b);
    b.namedBarrier(b.i32(kAllConsumers), threads);
  });
}

void AttentionConsumer::hideLastValues(const AttentionTile &tile,
                                       RingPosition at) {
  Value there = kernel.getKeysThere(tile, b.sub(tile.end, b.i32(1)));
  hideValues(at, isBefore(b, there, b.i32(memory.v.rows)),
             [&](Value row) { return isBefore(b, there, b.add(row, 1)); });
}

void AttentionConsumer::hideFirstValues(const AttentionTile &tile,
                                        RingPosition at) {
  Value before = kernel.getKeysBefore(tile, tile.begin);
  hideValues(at, isBefore(b, b.i32(0), before),
             [&](Value row) { return isBefore(b, row, before); });
}

AttentionState AttentionConsumer::begin(const AttentionTile &tile,
                                        RingPosition k, RingPosition v) {
  AttentionState state;
  state.v = v;
  Value last = b.sub(tile.end, b.i32(1));
  Value ofKeys = loadFactor(tile, "k", last);
  ringOfK.waitFull(k);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value product = multiplyQK(k.stage);
  SmallVector<Value> scores = waitForAccumulators(
      b, /*pending=*/0, getRegisters(product, config.getTileK() / 2));
  ringOfK.release(k.stage, kernel.lane);
  state.k = ringOfK.advance(k);
  scores = takeFactor(scores, ofKeys);
  scores = capAndMask->apply(scores, last, /*isLast=*/true);
  scores =
      softmax->mask(scores, getWindow(kernel, kFragmentScores, tile, last));
  if (spec.hasRestBehindKeys() && !memory.hasTransposedV())
    hideLastValues(tile, v);
  state.rows = softmax->getInitial();
  Softmax::Step step = softmax->raise(scores, state.rows);
  SmallVector<Value> powers = softmax->exponentiate(scores, state.rows, step);
  state.p = pack(round(drop(tile, last, powers)));
  state.sums.assign(spec.headDimOfV / 2, b.f32(0.0f));
  if (promotes())
    llvm::copy(step.corrections, state.corrections);
  return state;
}

Value AttentionConsumer::multiplyValues(AttentionState &state) {
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value accumulator = promotes()
                          ? LLVM::UndefOp::create(b, pv.getAccumulatorType())
                          : getAccumulator(state.sums);
  return multiplyPV(state.p, state.v.stage, accumulator,
                    /*overwrite=*/promotes());
}

void AttentionConsumer::add(AttentionState &state, Value product, Value factor,
                            SmallVectorImpl<Value> &others) {
  SmallVector<Value> terms = getRegisters(product, spec.headDimOfV / 2);
  llvm::append_range(terms, others);
  terms = waitForAccumulators(b, /*pending=*/0, terms);
  others.assign(terms.begin() + spec.headDimOfV / 2, terms.end());
  terms.truncate(spec.headDimOfV / 2);
  if (!promotes()) {
    state.sums = terms;
    return;
  }
  for (auto [i, term] : llvm::enumerate(terms)) {
    if (factor)
      term = b.mulF(term, factor);
    state.sums[i] =
        LLVM::FMAOp::create(b, b.getF32Type(), state.sums[i],
                            state.corrections[kFragmentScores.getRow(i)], term);
  }
}

Value AttentionConsumer::releaseAfter(Value stage, const Softmax::Rows &rows) {
  Value sum = arith::AddFOp::create(b, rows.sum[0], rows.sum[1]);
  Value sign =
      b.shiftRight(arith::BitcastOp::create(b, b.getI32Type(), sum), 31);
  ringOfK.release(b.add(stage, sign), kernel.lane);
  return sign;
}

void AttentionConsumer::exponentiate(const AttentionTile &tile, Value number,
                                     AttentionState &state,
                                     ArrayRef<Value> scores, Value ofValues) {
  Softmax::Step step = softmax->raise(scores, state.rows);
  giveTurnBeforePowers(step);
  SmallVector<Value> powers = softmax->exponentiate(scores, state.rows, step);
  powers = pinHere(b, round(drop(tile, number, powers)));
  releaseAfter(state.k.stage, state.rows);
  SmallVector<Value> others;
  // That product is of the tile before.
  add(state, ofValues, loadFactor(tile, "v", b.add(number, 1)), others);
  ringOfV.release(state.v.stage, kernel.lane);
  state.p = pack(powers);
  if (promotes())
    llvm::copy(step.corrections, state.corrections);
  else
    state.sums =
        Softmax::scaleRows(b, kFragmentScores, state.sums, step.corrections);
}

void AttentionConsumer::exponentiateUnlessLarge(AttentionState &state,
                                                ArrayRef<Value> scores,
                                                Value ofValues) {
  TilePowers made = computeTilePowers(
      kernel, *softmax, factors, scores, state.rows,
      takesTurns() && config.loadsZero() ? loadZeroBehindTurn() : Value());
  state.rows = made.rows;
  Value zero = releaseAfter(state.k.stage, state.rows);
  add(state, ofValues, /*factor=*/{}, made.words);
  ringOfV.release(state.v.stage, kernel.lane);
  // Operands are written here, behind the wait.
  state.p = llvm::map_to_vector(made.words,
                                [&](Value word) { return b.add(word, zero); });
  if (promotes()) {
    llvm::copy(made.corrections, state.corrections);
    return;
  }
  state.sums = b.choose(
      made.areRaised,
      [&] {
        return Softmax::scaleRows(b, kFragmentScores, state.sums,
                                  made.corrections);
      },
      [&] { return state.sums; });
}

AttentionState AttentionConsumer::step(const AttentionTile &tile, Value number,
                                       AttentionState state, bool masked) {
  Value ofKeys = loadFactor(tile, "k", number);
  ringOfK.waitFull(state.k);
  waitForTurn();
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value ofScores = multiplyQK(state.k.stage);
  ringOfV.waitFull(state.v);
  Value ofValues = multiplyValues(state);
  giveTurn(AttentionTurn::Issued);
  SmallVector<Value> scores = waitForAccumulators(
      b, /*pending=*/1, getRegisters(ofScores, config.getTileK() / 2));
  giveTurn(AttentionTurn::Scored);
  scores = takeFactor(scores, ofKeys);
  scores = capAndMask->apply(scores, number, /*isLast=*/false);
  if (masked)
    scores =
        softmax->mask(scores, getWindow(kernel, kFragmentScores, tile, number));
  // The product with the last P is still under way.
  if (keepsMaxima())
    exponentiateUnlessLarge(state, scores, ofValues);
  else
    exponentiate(tile, number, state, scores, ofValues);
  state.k = ringOfK.advance(state.k);
  state.v = ringOfV.advance(state.v);
  return state;
}

void AttentionConsumer::finish(const AttentionTile &tile,
                               AttentionState &state) {
  if (tile.start && !memory.hasTransposedV())
    hideFirstValues(tile, state.v);
  ringOfV.waitFull(state.v);
  SmallVector<Value> others;
  add(state, multiplyValues(state), loadFactor(tile, "v", tile.begin), others);
  ringOfV.release(state.v.stage, kernel.lane);
  state.v = ringOfV.advance(state.v);
}
