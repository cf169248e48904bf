//===- AttentionTiles.cpp - Which block computes which queries ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTiles.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Bytes of keys and values that stay in L2 while blocks read them: half of
/// what a Hopper has.
static constexpr int64_t kBytesInL2 = int64_t(24) << 20;

static Value maxSigned(KernelBuilder &b, Value lhs, Value rhs) {
  return b.createOrFold<arith::MaxSIOp>(lhs, rhs);
}
static Value minSigned(KernelBuilder &b, Value lhs, Value rhs) {
  return b.createOrFold<arith::MinSIOp>(lhs, rhs);
}

AttentionTiles::AttentionTiles(KernelBuilder &b, const AttentionSpec &spec,
                               AttentionConfigAttr config,
                               const llvm::StringMap<Value> &params)
    : b(b), spec(spec), tileQ(config.getQueriesOfTile()),
      tileK(config.getTileK()), tileHeads(config.getTileHeads()),
      splits(config.getSplits()), queries(params.lookup("queries")),
      keys(params.lookup("keys")) {
  Type i32 = b.getI32Type();
  first = NVVM::BlockIdXOp::create(b, i32);
  stride = NVVM::GridDimXOp::create(b, i32);
  diagonal = spec.bottomRight ? b.sub(keys, queries) : b.i32(0);
  tilesOfHead = b.ceilDiv(queries, tileQ);
  if (config.isForFewQueries()) {
    count = b.mul(b.mul(params.lookup("batch"), tilesOfHead),
                  spec.headsOfK * getTilesOfGroup(spec, tileHeads));
    setParts();
    return;
  }
  heads = b.mul(params.lookup("batch"), spec.heads);
  count = b.mul(tilesOfHead, heads);
  // Heads of Q that share one of K count once.
  int64_t bytesOfKey =
      (spec.headDim + spec.headDimOfV) * spec.getElementBytes();
  Value headsOfK = b.max(
      b.div(b.i32(kBytesInL2 / bytesOfKey), b.max(keys, b.i32(1))), b.i32(1));
  together = b.min(b.mul(headsOfK, spec.heads / spec.headsOfK), heads);
}

int64_t AttentionTiles::getTilesOfGroup(const AttentionSpec &spec,
                                        int64_t tileHeads) {
  return llvm::divideCeil(spec.heads / spec.headsOfK, tileHeads);
}

void AttentionTiles::setParts() {
  // Number of tiles of keys, as far as all queries see them; counts in what
  // follows have to fit into 27 bits.
  Value tiles = b.ceilDiv(keys, tileK);
  if (spec.left && spec.right) {
    int64_t seen = *spec.left + *spec.right + tileQ;
    tiles = b.min(tiles, b.i32(llvm::divideCeil(seen, tileK) + 1));
  }
  tiles = b.min(b.max(tiles, b.i32(1)), b.i32(1 << 16));
  Value some = b.max(count, b.i32(1));
  auto divideUp = [&](Value lhs, Value rhs) {
    return b.div(b.sub(b.add(lhs, rhs), b.i32(1)), rhs);
  };
  Value most = b.min(b.div(b.i32(kMaxParts), some), b.i32(splits));
  most = b.min(most, b.min(tiles, b.mul(divideUp(stride, some), 2)));
  most = b.max(most, b.i32(1));
  // Each lane tries one number: waves of blocks, times a part's tiles of keys
  // and 2 for its beginning and end, and an eighth for each result that is
  // read. Costs are 8 times that.
  Value lane = b.bitAnd(NVVM::ThreadIdXOp::create(b, b.getI32Type()), 31);
  Value number = b.mul(b.add(lane, 1), b.ceilDiv(most, 32));
  Value waves = divideUp(b.mul(some, number), stride);
  Value cost = b.mul(waves, b.add(b.mul(divideUp(tiles, number), 8), 16));
  cost = b.add(cost, number);
  Value isAllowed = b.less(number, b.add(most, 1));
  cost =
      b.select(isAllowed, b.min(cost, b.i32((1 << 26) - 1)), b.i32((1 << 26)));
  Value best = b.add(b.mul(cost, 32), lane);
  for (int64_t distance : {1, 2, 4, 8, 16}) {
    Value other = NVVM::ShflOp::create(
        b, b.getI32Type(), b.i32(-1), best, b.i32(distance), b.i32(31),
        NVVM::ShflKind::bfly, /*return_value_and_is_valid=*/UnitAttr());
    best = b.min(best, other);
  }
  Value chosen = b.mul(b.add(b.bitAnd(best, 31), 1), b.ceilDiv(most, 32));
  parts = b.uniform(b.min(chosen, most));
  count = b.mul(count, parts);
}

AttentionTile AttentionTiles::getTileOfGroup(Value item) const {
  AttentionTile tile;
  int64_t group = spec.heads / spec.headsOfK;
  int64_t tilesOfGroup = getTilesOfGroup(spec, tileHeads);
  tile.number = b.div(item, parts);
  tile.part = b.sub(item, b.mul(tile.number, parts));
  Value unit = b.div(tile.number, tilesOfHead);
  tile.query = b.mul(b.sub(tile.number, b.mul(unit, tilesOfHead)), tileQ);
  Value headOfAll = b.div(unit, tilesOfGroup);
  Value inGroup = b.mul(b.rem(unit, tilesOfGroup), tileHeads);
  tile.batch = b.div(headOfAll, spec.headsOfK);
  tile.headOfK = b.rem(headOfAll, spec.headsOfK);
  tile.head = b.add(b.mul(tile.headOfK, group), inGroup);
  tile.headsThere = b.min(b.i32(tileHeads), b.sub(b.i32(group), inGroup));
  setRange(tile);
  // The part's; beyond the last it sees no key, as it must have a tile.
  Value ofPart =
      b.div(b.sub(b.add(b.sub(tile.end, tile.begin), parts), b.i32(1)), parts);
  tile.begin = b.add(tile.begin, b.mul(tile.part, ofPart));
  tile.end = minSigned(b, tile.end, b.add(tile.begin, ofPart));
  tile.end = maxSigned(b, tile.end, b.add(tile.begin, 1));
  auto clamp = [&](Value number) {
    return minSigned(b, maxSigned(b, number, tile.begin), tile.end);
  };
  tile.fullBegin = clamp(tile.fullBegin);
  tile.fullEnd = maxSigned(b, clamp(tile.fullEnd), tile.fullBegin);
  return tile;
}

AttentionRow AttentionTiles::getRow(const AttentionTile &tile,
                                    Value row) const {
  AttentionRow found{b.div(row, tileHeads), b.rem(row, tileHeads), Value()};
  Value query = b.add(tile.query, found.query);
  found.isThere =
      b.bitAnd(b.less(query, queries), b.less(found.head, tile.headsThere));
  found.query = b.select(found.isThere, query, tile.query);
  found.head = b.select(found.isThere, b.add(tile.head, found.head), tile.head);
  return found;
}

Value AttentionTiles::getOwnKey(const AttentionTile &tile, Value row) const {
  return b.add(b.add(tile.query, b.div(row, tileHeads)), diagonal);
}

AttentionTile AttentionTiles::getTile(Value item) const {
  if (parts)
    return getTileOfGroup(item);
  AttentionTile tile;
  Value perSection = b.mul(together, tilesOfHead);
  Value section = b.div(item, perSection);
  Value firstHead = b.mul(section, together);
  Value inSection = b.sub(item, b.mul(section, perSection));
  Value headsHere = b.min(together, b.sub(heads, firstHead));
  Value number = b.div(inSection, headsHere);
  Value head = b.add(firstHead, b.sub(inSection, b.mul(number, headsHere)));
  number = b.sub(b.sub(tilesOfHead, number), b.i32(1));
  tile.batch = b.div(head, spec.heads);
  tile.head = b.rem(head, spec.heads);
  tile.headOfK = b.div(tile.head, spec.heads / spec.headsOfK);
  tile.query = b.mul(number, tileQ);
  setRange(tile);
  return tile;
}

void AttentionTiles::setRange(AttentionTile &tile) const {
  Value zero = b.i32(0);
  Value first = b.add(tile.query, diagonal);
  Value last = b.add(first, tileQ - 1);
  Value lastThere =
      minSigned(b, last, b.add(b.sub(queries, b.i32(1)), diagonal));
  Value begin = zero, end = keys;
  tile.fullBegin = zero;
  tile.fullEnd = b.div(keys, tileK);
  if (spec.right) {
    end = minSigned(b, end,
                    maxSigned(b, b.add(lastThere, *spec.right + 1), zero));
    Value seenByAll = maxSigned(b, b.add(first, *spec.right + 1), zero);
    tile.fullEnd = b.min(tile.fullEnd, b.div(seenByAll, tileK));
  }
  if (spec.left) {
    begin = maxSigned(b, b.sub(first, b.i32(*spec.left)), zero);
    tile.fullBegin =
        b.ceilDiv(maxSigned(b, b.sub(last, b.i32(*spec.left)), zero), tileK);
  }
  tile.begin = b.div(begin, tileK);
  // A tile of which no query sees a key takes one that is all masked.
  tile.end = b.max(b.ceilDiv(end, tileK), b.add(tile.begin, 1));
  tile.fullBegin = b.min(b.max(tile.fullBegin, tile.begin), tile.end);
  tile.fullEnd = b.min(b.max(tile.fullEnd, tile.fullBegin), tile.end);
}
