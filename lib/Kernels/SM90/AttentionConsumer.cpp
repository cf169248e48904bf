//===- AttentionConsumer.cpp - The warpgroups that compute attention ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warpgroup has 64 queries. It computes the scores of a tile of keys while
// the product of the tile before and its values is under way:
//
//   S = Q K[last];  P = softmax(S)
//   for tiles from the last but one: S = Q K | O += P V
//                                    P' = softmax(S) | O is scaled
//   O += P V;  O / sum is stored
//
//===----------------------------------------------------------------------===//

#include "../Attention/AttentionParts.h"
#include "../Attention/AttentionPowers.h"
#include "../Attention/AttentionScores.h"
#include "../Blocks/BulkCopy.h"
#include "../Blocks/Hazards.h"
#include "AttentionStore.h"
#include "AttentionTotals.h"
#include "Wgmma.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Named barriers: 1.. are the warpgroups' own, these their turns, and that of
/// all of them.
static constexpr int64_t kFirstTurn = 4, kAllConsumers = 7;

namespace {
/// Registers that a tile hands on to the next.
struct State {
  /// Sums of P V, and P of the tile that V is yet to be multiplied with.
  SmallVector<Value> sums, p;
  Softmax::Rows rows;
  /// With promotion, what `sums` are multiplied by before that product is
  /// added.
  Value corrections[2];
  RingPosition k, v;

  SmallVector<Value> pack() const;
  static State unpack(ValueRange values, size_t sums, size_t p);
};

class AttentionConsumer {
public:
  explicit AttentionConsumer(const AttentionContext &kernel);
  void build();

private:
  /// Scores of the tile in stage `stage` of K, not waited for.
  Value multiplyQK(Value stage);
  /// `accumulator` and the product of `p` and stage `stage` of V.
  Value multiplyPV(ArrayRef<Value> p, Value stage, Value accumulator,
                   bool overwrite);
  SmallVector<Value> getRegisters(Value accumulator, int64_t count);
  Value getAccumulator(ArrayRef<Value> registers);
  /// Powers as far as they are rounded before the product that is under way
  /// ends, and then as operands of the next. ptxas does not let operands of a
  /// wgmma be written while others are in flight (C7513).
  SmallVector<Value> round(ArrayRef<Value> powers);
  SmallVector<Value> pack(ArrayRef<Value> rounded);
  /// Powers of tile `number` of keys, with 0 for those that are left out.
  SmallVector<Value> drop(const AttentionTile &tile, Value number,
                          ArrayRef<Value> powers);
  /// With the factors of a tile's scores.
  void setSoftmax(const AttentionTile &tile);
  /// The factor of the block of `name`, "k" or "v", that tile `number` of keys
  /// is of; null where there is none.
  Value loadFactor(const AttentionTile &tile, StringRef name, Value number);
  /// Has the softmax multiply scores by a tile's factor, unless it is given
  /// exponents: then `scores` times it.
  SmallVector<Value> takeFactor(ArrayRef<Value> scores, Value factor);
  /// The rows that are this thread's, or the last ones, if there is a mask.
  SmallVector<AttentionRow> getMaskedRows(const AttentionTile &tile);
  /// Writes zeros over the last tile's values that a batch's own keys end
  /// before, and over the first tile's before these begin: they may be
  /// anything, and a power of 0 times NaN is NaN.
  void hideLastValues(const AttentionTile &tile, RingPosition at);
  void hideFirstValues(const AttentionTile &tile, RingPosition at);
  /// Over those of which `isHidden` says so, if `hides` (i1).
  void hideValues(RingPosition at, Value hides,
                  llvm::function_ref<Value(Value row)> isHidden);

  State begin(const AttentionTile &tile, RingPosition k, RingPosition v);
  State step(const AttentionTile &tile, Value number, State state, bool masked);
  /// Tiles from the last but one down to the first.
  State walk(const AttentionTile &tile, State state);
  /// All keys; in an invariant operation of many queries chunk by chunk, of
  /// which `totals` has what is known of both rows.
  State walkAll(const AttentionTile &tile, RingPosition at,
                SmallVector<Softmax::Total> &totals);
  /// Adds the last product.
  void finish(const AttentionTile &tile, State &state);
  /// The product of P and V, for now added to the sums unless these are
  /// promoted; and the sums with it, times `factor` if blocks of values have
  /// some, once it is there.
  Value multiplyValues(State &state);
  void add(State &state, Value product, Value factor);
  /// Gives a stage of K back once the softmax is computed: it depends on its
  /// sums, which have no sign. ptxas would otherwise have the wait for the
  /// product of P and V before the exponentials that run beside it.
  void releaseAfter(Value stage, const Softmax::Rows &rows);

  /// Warpgroups issue the products of a tile of keys in turn; each waits at a
  /// barrier of its own for the one before.
  bool takesTurns() const {
    return config.getTurn() != AttentionTurn::None && config.getConsumers() > 1;
  }
  void waitForTurn();
  void giveTurn(AttentionTurn when);
  /// Gives the turn with the maxima, all powers behind it: ptxas would mix
  /// powers of a thread's first row with maxima of its second.
  void giveTurnBeforePowers(Softmax::Step &step);

  bool promotes() const { return spec.accumulate == Accumulate::Promote; }

  const AttentionContext &kernel;
  KernelBuilder &b;
  const AttentionSpec &spec;
  AttentionConfigAttr config;
  const AttentionMemory &memory;
  Ring ringOfQ, ringOfK, ringOfV;
  WgmmaInstruction qk, pv;
  /// Number of the warpgroup.
  Value group;
  /// Descriptors (i64) of Q, and of stage 0 of K and of V.
  Value descriptorQ, descriptorK, descriptorV;
  /// The matrix that V is read from.
  const SharedMatrix &values;
  int64_t offsetOfValues;
  std::optional<Softmax> softmax;
  /// Factors of scores but for those of keys, if blocks of these have some.
  Value factorsOfRows[2];
  std::optional<AttentionScores> capAndMask;
  std::optional<AttentionDropout> dropout;
  AttentionStore store;
  /// In place of it for few queries.
  AttentionParts parts;
};
} // namespace

SmallVector<Value> State::pack() const {
  SmallVector<Value> values(sums);
  llvm::append_range(values, p);
  for (int64_t row : {0, 1})
    llvm::append_range(values, ArrayRef{rows.max[row], rows.sum[row]});
  llvm::append_range(values, ArrayRef{k.stage, k.phase, v.stage, v.phase});
  if (corrections[0])
    llvm::append_range(values, corrections);
  return values;
}

State State::unpack(ValueRange values, size_t sums, size_t p) {
  State state;
  state.sums = llvm::to_vector(values.take_front(sums));
  state.p = llvm::to_vector(values.slice(sums, p));
  values = values.drop_front(sums + p);
  for (int64_t row : {0, 1}) {
    state.rows.max[row] = values[2 * row];
    state.rows.sum[row] = values[2 * row + 1];
  }
  state.k = {values[4], values[5]};
  state.v = {values[6], values[7]};
  if (values.size() > 8)
    for (int64_t row : {0, 1})
      state.corrections[row] = values[8 + row];
  return state;
}

AttentionConsumer::AttentionConsumer(const AttentionContext &kernel)
    : kernel(kernel), b(kernel.b), spec(kernel.spec), config(kernel.config),
      memory(kernel.memory), ringOfQ(kernel.q), ringOfK(kernel.k),
      ringOfV(memory.hasTransposedV() ? kernel.transposedV : kernel.v),
      qk{config.getTileK(), spec.q, spec.k},
      pv{spec.headDimOfV, spec.v, spec.v, /*transposedA=*/false,
         /*transposedB=*/!memory.hasTransposedV()},
      group(b.shiftRight(kernel.warp, 2)),
      values(memory.hasTransposedV() ? memory.transposedV : memory.v),
      offsetOfValues(memory.hasTransposedV() ? memory.offsetTransposedV
                                             : memory.offsetV),
      store(kernel, group),
      parts(kernel, PartsLayout(spec, config.getTileQ(), config.getTileHeads()),
            memory.hasTransposedV() ? SumsOrder::Quads : SumsOrder::Pairs,
            memory.offsetFlag) {
  descriptorQ = memory.q.getDescriptor(
      b, b.add(b.add(kernel.base, b.mul(group, 64 * memory.q.width)),
               memory.offsetQ));
  descriptorK = memory.k.getDescriptor(b, b.add(kernel.base, memory.offsetK));
  Value address = b.add(kernel.base, offsetOfValues);
  descriptorV = pv.transposedB ? values.getTransposedDescriptor(b, address)
                               : values.getDescriptor(b, address);
  if (spec.dropThreshold)
    dropout.emplace(b, kernel.getParam("dropout.ptr"), spec.dropThreshold);
}

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

void AttentionConsumer::giveTurnBeforePowers(Softmax::Step &step) {
  if (!takesTurns() || config.getTurn() != AttentionTurn::Raised)
    return;
  giveTurn(AttentionTurn::Raised);
  // A zero that ptxas neither knows nor loads before the turn is given.
  Value zero = LLVM::LoadOp::create(
      b, b.getI32Type(), b.offset(kernel.shared, b.i32(memory.offsetFlag)),
      /*alignment=*/4, /*isVolatile=*/true);
  for (Value &offset : step.offsets) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), offset);
    offset = arith::BitcastOp::create(b, b.getF32Type(), b.add(bits, zero));
  }
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

State AttentionConsumer::begin(const AttentionTile &tile, RingPosition k,
                               RingPosition v) {
  State state;
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

Value AttentionConsumer::multiplyValues(State &state) {
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value accumulator = promotes()
                          ? LLVM::UndefOp::create(b, pv.getAccumulatorType())
                          : getAccumulator(state.sums);
  return multiplyPV(state.p, state.v.stage, accumulator,
                    /*overwrite=*/promotes());
}

void AttentionConsumer::add(State &state, Value product, Value factor) {
  SmallVector<Value> terms = waitForAccumulators(
      b, /*pending=*/0, getRegisters(product, spec.headDimOfV / 2));
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

void AttentionConsumer::releaseAfter(Value stage, const Softmax::Rows &rows) {
  Value sum = arith::AddFOp::create(b, rows.sum[0], rows.sum[1]);
  Value sign =
      b.shiftRight(arith::BitcastOp::create(b, b.getI32Type(), sum), 31);
  ringOfK.release(b.add(stage, sign), kernel.lane);
}

State AttentionConsumer::step(const AttentionTile &tile, Value number,
                              State state, bool masked) {
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
  Softmax::Step step = softmax->raise(scores, state.rows);
  giveTurnBeforePowers(step);
  SmallVector<Value> powers = softmax->exponentiate(scores, state.rows, step);
  powers = pinHere(b, round(drop(tile, number, powers)));
  releaseAfter(state.k.stage, state.rows);
  // That product is of the tile before.
  add(state, ofValues, loadFactor(tile, "v", b.add(number, 1)));
  ringOfV.release(state.v.stage, kernel.lane);
  state.p = pack(powers);
  if (promotes())
    llvm::copy(step.corrections, state.corrections);
  else
    state.sums =
        Softmax::scaleRows(b, kFragmentScores, state.sums, step.corrections);
  state.k = ringOfK.advance(state.k);
  state.v = ringOfV.advance(state.v);
  return state;
}

State AttentionConsumer::walk(const AttentionTile &tile, State state) {
  // Down to `to`; `from` is one beyond them.
  auto walkTiles = [&](Value from, Value to, bool masked) {
    SmallVector<Value> initial = state.pack();
    SmallVector<Value> final =
        b.loop(b.i32(0), b.sub(from, to), b.i32(1), initial,
               [&](Value i, ValueRange carried) {
                 State before =
                     State::unpack(carried, state.sums.size(), state.p.size());
                 Value number = b.sub(b.sub(from, i), b.i32(1));
                 return step(tile, number, before, masked).pack();
               });
    state = State::unpack(final, state.sums.size(), state.p.size());
  };
  forEachRunOfKeys(kernel, tile, walkTiles);
  return state;
}

void AttentionConsumer::finish(const AttentionTile &tile, State &state) {
  if (tile.start && !memory.hasTransposedV())
    hideFirstValues(tile, state.v);
  ringOfV.waitFull(state.v);
  add(state, multiplyValues(state), loadFactor(tile, "v", tile.begin));
  ringOfV.release(state.v.stage, kernel.lane);
  state.v = ringOfV.advance(state.v);
}

State AttentionConsumer::walkAll(const AttentionTile &tile, RingPosition at,
                                 SmallVector<Softmax::Total> &totals) {
  AttentionTotals sums(b, kernel.totals, spec.headDimOfV / 2);
  sums.clear();
  auto [first, beyond] = kernel.tiles.getChunks(tile);
  Softmax::Total none = Softmax::getNone(b);
  SmallVector<Value> all = b.loop(
      b.i32(0), b.sub(beyond, first), b.i32(1),
      {none.exponent, none.sum, none.exponent, none.sum, at.stage, at.phase},
      [&](Value i, ValueRange carried) -> SmallVector<Value> {
        AttentionTile chunk = tile;
        kernel.tiles.limitToChunk(chunk, b.sub(b.sub(beyond, b.i32(1)), i));
        RingPosition at{carried[4], carried[5]};
        State state = walk(chunk, begin(chunk, at, at));
        finish(chunk, state);
        Softmax::Total totals[2] = {{carried[0], carried[1]},
                                    {carried[2], carried[3]}};
        std::pair<Value, Value> weights[2];
        for (int64_t half : {0, 1})
          weights[half] = Softmax::merge(b, totals[half],
                                         softmax->getTotal(state.rows, half));
        sums.add(state.sums, weights);
        return {totals[0].exponent, totals[0].sum, totals[1].exponent,
                totals[1].sum,      state.v.stage, state.v.phase};
      });
  State state;
  state.sums = sums.load();
  totals = {{all[0], all[1]}, {all[2], all[3]}};
  state.v = {all[4], all[5]};
  return state;
}

//===----------------------------------------------------------------------===//
// All tiles
//===----------------------------------------------------------------------===//

void AttentionConsumer::setSoftmax(const AttentionTile &tile) {
  Value factors[2];
  SmallVector<AttentionRow> rows;
  // Rows may be of different heads, and of different blocks of queries.
  if (config.isForFewQueries() &&
      (spec.positionsOfFactor[0] ||
       (spec.hasHeadFactors[0] && config.getTileHeads() != 1)))
    rows = {parts.getOwnRow(tile, 0), parts.getOwnRow(tile, 1)};
  else if (spec.positionsOfFactor[0])
    rows = getOwnRows(kernel, kFragmentScores, tile);
  for (int64_t half : {0, 1}) {
    bool areAlike = rows.empty();
    factors[half] = getFactorOfScores(
        kernel, tile, areAlike ? tile.head : rows[half].head,
        spec.positionsOfFactor[0] ? rows[half].query : Value());
    if (areAlike && spec.isScaled) {
      factors[1] = factors[0];
      break;
    }
  }
  capAndMask.emplace(kernel, kFragmentScores, tile, factors,
                     getMaskedRows(tile));
  llvm::copy(factors, factorsOfRows);
  if (AttentionScores::makesExponents(spec))
    factors[0] = factors[1] = b.f32(1.0f);
  softmax.emplace(b, kFragmentScores, factors, std::log2(spec.factorOfP),
                  config.getPolynomials());
}

Value AttentionConsumer::loadFactor(const AttentionTile &tile, StringRef name,
                                    Value number) {
  if (!spec.positionsOfFactor[name == "k" ? 1 : 2])
    return {};
  return getFactorAt(kernel, name, tile.batch, tile.headOfK,
                     b.mul(number, config.getTileK()));
}

SmallVector<Value> AttentionConsumer::takeFactor(ArrayRef<Value> scores,
                                                 Value factor) {
  if (!factor)
    return SmallVector<Value>(scores);
  if (AttentionScores::makesExponents(spec))
    return Softmax::scaleRows(b, kFragmentScores, scores, {factor, factor});
  softmax->setFactors(
      {b.mulF(factorsOfRows[0], factor), b.mulF(factorsOfRows[1], factor)});
  return SmallVector<Value>(scores);
}

SmallVector<AttentionRow>
AttentionConsumer::getMaskedRows(const AttentionTile &tile) {
  if (spec.mask && config.isForFewQueries())
    return {parts.getOwnRow(tile, 0), parts.getOwnRow(tile, 1)};
  return fp8::getMaskedRows(kernel, kFragmentScores, tile);
}

void AttentionConsumer::build() {
  const AttentionTiles &tiles = kernel.tiles;
  bool hasFewQueries = config.isForFewQueries();
  if (takesTurns())
    b.ifThen(b.equal(group, config.getConsumers() - 1),
             [&] { b.namedBarrierArrive(b.i32(kFirstTurn), 256); });
  b.loop(tiles.getFirst(), tiles.getCount(), tiles.getStride(),
         {b.i32(0), b.i32(0), b.i32(0)},
         [&](Value item, ValueRange carried) -> SmallVector<Value> {
           AttentionTile tile = tiles.getTile(item);
           setSoftmax(tile);
           RingPosition q{b.i32(0), carried[0]};
           RingPosition at{carried[1], carried[2]};
           if (hasFewQueries)
             parts.loadQueries(tile, memory.q, memory.offsetQ, /*copies=*/1);
           else
             ringOfQ.waitFull(q);
           bool inChunks = spec.invariant && !hasFewQueries;
           SmallVector<Softmax::Total> totals;
           State state = inChunks ? walkAll(tile, at, totals)
                                  : walk(tile, begin(tile, at, at));
           bool sharesQ = memory.sharesQ();
           if (!hasFewQueries && !sharesQ)
             ringOfQ.release(q.stage, kernel.lane);
           if (!inChunks)
             finish(tile, state);
           // Rows of codes are shorter than those of Q and of numbers, and
           // would lie on rows that other warps still read.
           if (sharesQ && spec.rounded && memory.output.width != memory.q.width)
             b.namedBarrier(b.i32(kAllConsumers), 128 * config.getConsumers());
           if (hasFewQueries)
             parts.store(tile, state.sums,
                         {softmax->getTotal(state.rows, 0),
                          softmax->getTotal(state.rows, 1)},
                         softmax->getLogOfP());
           else
             store.store(tile, *softmax, state.sums, state.rows, totals);
           if (!hasFewQueries && sharesQ) {
             b.namedBarrier(b.add(group, 1), 128);
             ringOfQ.release(q.stage, kernel.lane);
           }
           return {b.bitXor(carried[0], b.i32(1)), state.v.stage,
                   state.v.phase};
         });
  // Shared memory is read until the block ends.
  b.electOne([&] { waitForReads(b, 0); });
}

void sm90::buildAttentionConsumer(const AttentionContext &kernel) {
  AttentionConsumer(kernel).build();
}
