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

#include "AttentionConsumer.h"
#include "../Blocks/BulkCopy.h"
#include "AttentionTilePowers.h"
#include "AttentionTotals.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

SmallVector<Value> AttentionState::pack() const {
  SmallVector<Value> values(sums);
  llvm::append_range(values, p);
  for (int64_t row : {0, 1})
    llvm::append_range(values, ArrayRef{rows.max[row], rows.sum[row]});
  llvm::append_range(values, ArrayRef{k.stage, k.phase, v.stage, v.phase});
  if (corrections[0])
    llvm::append_range(values, corrections);
  return values;
}

AttentionState AttentionState::unpack(ValueRange values, size_t sums,
                                      size_t p) {
  AttentionState state;
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
// All tiles
//===----------------------------------------------------------------------===//

AttentionState AttentionConsumer::walk(const AttentionTile &tile,
                                       AttentionState state) {
  // Down to `to`; `from` is one beyond them.
  auto walkTiles = [&](Value from, Value to, bool masked) {
    SmallVector<Value> initial = state.pack();
    SmallVector<Value> final =
        b.loop(b.i32(0), b.sub(from, to), b.i32(1), initial,
               [&](Value i, ValueRange carried) {
                 AttentionState before = AttentionState::unpack(
                     carried, state.sums.size(), state.p.size());
                 Value number = b.sub(b.sub(from, i), b.i32(1));
                 return step(tile, number, before, masked).pack();
               });
    state = AttentionState::unpack(final, state.sums.size(), state.p.size());
  };
  forEachRunOfKeys(kernel, tile, walkTiles);
  return state;
}

AttentionState AttentionConsumer::walkAll(const AttentionTile &tile,
                                          RingPosition at,
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
        AttentionState state = walk(chunk, begin(chunk, at, at));
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
  AttentionState state;
  state.sums = sums.load();
  totals = {{all[0], all[1]}, {all[2], all[3]}};
  state.v = {all[4], all[5]};
  return state;
}

void AttentionConsumer::setSoftmax(const AttentionTile &tile) {
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
  float logOfP = std::log2(spec.factorOfP) -
                 (keepsMaxima() ? getMarginOfMaxima(spec.v) : 0);
  softmax.emplace(b, kFragmentScores, factors, logOfP, config.getPolynomials());
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
           AttentionState state = inChunks ? walkAll(tile, at, totals)
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
