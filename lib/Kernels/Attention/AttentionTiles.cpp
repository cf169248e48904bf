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
using namespace mlir::fp8;

static Value maxSigned(KernelBuilder &b, Value lhs, Value rhs) {
  return b.createOrFold<arith::MaxSIOp>(lhs, rhs);
}
static Value minSigned(KernelBuilder &b, Value lhs, Value rhs) {
  return b.createOrFold<arith::MinSIOp>(lhs, rhs);
}

static Value divideUp(KernelBuilder &b, Value lhs, Value rhs) {
  return b.div(b.sub(b.add(lhs, rhs), b.i32(1)), rhs);
}

/// Heads of a key lie beside each other: blocks that are neighbours walk the
/// same keys of neighbouring heads, so that what memory opens for one of them
/// serves all.
static int64_t getRowsOfBlocks(const AttentionSpec &spec, int64_t tileHeads) {
  if (spec.layout != fp8::AttentionLayout::BSHD)
    return 1;
  int64_t tiles =
      spec.headsOfK * AttentionTiles::getTilesOfGroup(spec, tileHeads);
  constexpr int64_t kMaxRows = 32;
  int64_t rows = std::min(tiles, kMaxRows);
  while (tiles % rows != 0)
    --rows;
  return rows;
}

AttentionTiles::AttentionTiles(KernelBuilder &b, const AttentionSpec &spec,
                               const Shape &shape,
                               const llvm::StringMap<Value> &params)
    : b(b), spec(spec), tileQ(shape.queries), tileK(shape.keys),
      tileHeads(shape.heads), queries(params.lookup("queries")),
      keys(params.lookup("keys")), keyLengths(params.lookup("key_lengths.ptr")),
      keyStarts(params.lookup("key_starts.ptr")),
      keyRanges(params.lookup("key_ranges.ptr")) {
  Type i32 = b.getI32Type();
  first = NVVM::BlockIdXOp::create(b, i32);
  stride = NVVM::GridDimXOp::create(b, i32);
  tilesOfHead = b.ceilDiv(queries, tileQ);
  if (shape.splitTiles) {
    count = b.mul(params.lookup("batch"),
                  spec.headsOfK * getTilesOfGroup(spec, tileHeads));
    if (spec.invariant) {
      chunks = b.max(b.ceilDiv(keys, kChunkKeys), b.i32(1));
      count = b.mul(count, chunks);
      return;
    }
    // Fewer blocks than rows are one row.
    int64_t most = getRowsOfBlocks(spec, tileHeads);
    rows = b.select(b.less(stride, b.i32(most)), b.i32(1), b.i32(most));
    shareKeys(shape.splitTiles);
    return;
  }
  heads = b.mul(params.lookup("batch"), spec.heads);
  count = b.mul(tilesOfHead, heads);
  // Heads of Q that share one of K count once.
  int64_t bytesOfKey =
      (spec.headDim + spec.headDimOfV) * spec.getElementBytes();
  Value headsOfK =
      b.max(b.div(b.i32(shape.bytesInL2 / bytesOfKey), b.max(keys, b.i32(1))),
            b.i32(1));
  together = b.min(b.mul(headsOfK, spec.heads / spec.headsOfK), heads);
}

int64_t AttentionTiles::getTilesOfGroup(const AttentionSpec &spec,
                                        int64_t tileHeads) {
  return llvm::divideCeil(spec.heads / spec.headsOfK, tileHeads);
}

void AttentionTiles::shareKeys(int64_t leastTiles) {
  // All tiles have the same queries, so that they see as many keys.
  AttentionTile tile;
  tile.query = b.i32(0);
  setKeys(tile, keys);
  setRange(tile);
  tilesOfKeys = b.sub(tile.end, tile.begin);
  // A window of fewer keys may begin anywhere in a tile.
  if (keyLengths && spec.left)
    tilesOfKeys = b.add(tilesOfKeys, 1);
  Value all = b.mul(b.div(count, rows), tilesOfKeys);
  Value blocks = b.div(b.min(stride, b.i32(kMaxBlocks)), rows);
  share = b.max(divideUp(b, all, blocks), b.i32(leastTiles));
  row = b.rem(first, rows);
  block = b.div(first, rows);
  begin = b.min(b.mul(block, share), all);
  end = b.min(b.add(begin, share), all);
  first = b.div(begin, tilesOfKeys);
  count = divideUp(b, end, tilesOfKeys);
  stride = b.i32(1);
}

AttentionTile AttentionTiles::getTileOfGroup(Value item) const {
  AttentionTile tile;
  int64_t group = spec.heads / spec.headsOfK;
  int64_t tilesOfGroup = getTilesOfGroup(spec, tileHeads);
  Value number = chunks ? b.div(item, chunks) : b.add(b.mul(item, rows), row);
  Value headOfAll = b.div(number, tilesOfGroup);
  Value inGroup = b.mul(b.rem(number, tilesOfGroup), tileHeads);
  tile.query = b.i32(0);
  tile.batch = b.div(headOfAll, spec.headsOfK);
  tile.headOfK = b.rem(headOfAll, spec.headsOfK);
  tile.head = b.add(b.mul(tile.headOfK, group), inGroup);
  tile.headsThere = b.min(b.i32(tileHeads), b.sub(b.i32(group), inGroup));
  setKeys(tile, getKeysOf(tile.batch));
  setStart(tile);
  setRange(tile);
  limitToRanges(tile);
  if (chunks) {
    tile.number = number;
    tile.chunk = b.rem(item, chunks);
    tile.parts = chunks;
    limitToChunk(tile, tile.chunk);
    return tile;
  }
  // What is the block's of it.
  Value ofTile = b.mul(item, tilesOfKeys), beyond = b.add(ofTile, tilesOfKeys);
  tile.firstBlock = b.div(ofTile, share);
  tile.isContinued = b.less(b.mul(tile.firstBlock, share), ofTile);
  tile.parts = b.sub(divideUp(b, beyond, share), tile.firstBlock);
  Value first = b.sub(b.max(begin, ofTile), ofTile);
  Value last = b.sub(b.min(end, beyond), ofTile);
  Value beyondPart = b.add(tile.begin, last);
  tile.begin = b.add(tile.begin, first);
  // A part beyond a batch's own keys has a tile that is all masked.
  bool hasOwnKeys = keyLengths || keyStarts || keyRanges;
  tile.end = hasOwnKeys ? maxSigned(b, minSigned(b, tile.end, beyondPart),
                                    b.add(tile.begin, 1))
                        : beyondPart;
  auto clamp = [&](Value number) {
    return minSigned(b, maxSigned(b, number, tile.begin), tile.end);
  };
  tile.fullBegin = clamp(tile.fullBegin);
  tile.fullEnd = clamp(tile.fullEnd);
  return tile;
}

Value AttentionTiles::getPlace(const AttentionTile &tile, Value part) const {
  if (chunks)
    return b.add(b.mul(tile.number, chunks), part);
  // The first block comes to the tile second if it has some of the one before.
  Value isSecond = b.bitAnd(b.equal(part, 0), tile.isContinued);
  Value place = b.mul(getNumberOf(b.add(tile.firstBlock, part)), 2);
  return b.add(place, b.select(isSecond, b.i32(1), b.i32(0)));
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
  return b.add(b.add(tile.query, b.div(row, tileHeads)), tile.diagonal);
}

AttentionTile AttentionTiles::getTile(Value item) const {
  if (share || chunks)
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
  setKeys(tile, getKeysOf(tile.batch));
  setStart(tile);
  setRange(tile);
  limitToRanges(tile);
  return tile;
}

Value AttentionTiles::getKeysOf(Value batch) const {
  if (!keyLengths)
    return keys;
  Value length = b.loadConstant(
      b.element(keyLengths, b.widen(batch), b.getI32Type()), b.getI32Type());
  return minSigned(b, maxSigned(b, length, b.i32(0)), keys);
}

void AttentionTiles::setKeys(AttentionTile &tile, Value keys) const {
  tile.keys = keys;
  tile.diagonal = spec.bottomRight ? b.sub(keys, queries) : b.i32(0);
}

void AttentionTiles::setStart(AttentionTile &tile) const {
  if (!keyStarts)
    return;
  Value start =
      b.loadConstant(b.element(keyStarts, b.widen(tile.batch), b.getI32Type()),
                     b.getI32Type());
  start = minSigned(b, maxSigned(b, start, b.i32(0)), tile.keys);
  if (!spec.invariant) {
    tile.start = start;
    return;
  }
  tile.origin = start;
  tile.keys = b.sub(tile.keys, start);
  tile.diagonal = b.sub(tile.diagonal, start);
}

std::pair<Value, Value>
AttentionTiles::getChunks(const AttentionTile &tile) const {
  int64_t tiles = kChunkKeys / tileK;
  return {b.div(tile.begin, tiles), b.ceilDiv(tile.end, tiles)};
}

void AttentionTiles::limitToChunk(AttentionTile &tile, Value chunk) const {
  int64_t tiles = kChunkKeys / tileK;
  Value first = b.mul(chunk, tiles), beyond = b.add(first, tiles);
  tile.begin = b.min(b.max(tile.begin, first), b.sub(beyond, b.i32(1)));
  tile.end = b.max(b.min(tile.end, beyond), b.add(tile.begin, 1));
  tile.fullBegin = b.min(b.max(tile.fullBegin, tile.begin), tile.end);
  tile.fullEnd = b.min(b.max(tile.fullEnd, tile.fullBegin), tile.end);
}

std::pair<Value, Value> AttentionTiles::loadRange(Value batch,
                                                  Value query) const {
  Value index = b.add(b.mul(b.widen(batch), b.widen(queries)), b.widen(query));
  Value pair = b.element(keyRanges, b.mul(index, 2), b.getI32Type());
  // Differences of keys and numbers far below 0 would wrap.
  auto load = [&](Value place) {
    return maxSigned(b, b.loadConstant(place, b.getI32Type()), b.i32(0));
  };
  return {load(pair), load(b.offset(pair, b.i32(4)))};
}

std::optional<std::pair<Value, Value>>
AttentionTiles::getRange(const AttentionTile &tile, Value row) const {
  if (!keyRanges)
    return std::nullopt;
  Value query = b.add(tile.query, b.div(row, tileHeads));
  auto [from, to] =
      loadRange(tile.batch, minSigned(b, query, b.sub(queries, b.i32(1))));
  return std::pair{fromOrigin(tile, from), fromOrigin(tile, to)};
}

/// The least of all lanes, or the largest.
static Value reduceLanes(KernelBuilder &b, Value value, NVVM::ReduxKind kind) {
  return NVVM::ReduxOp::create(b, b.getI32Type(), value, kind, b.i32(-1));
}

void AttentionTiles::limitToRanges(AttentionTile &tile) const {
  if (!keyRanges)
    return;
  // Each lane reads those of some queries, in any order that they may have.
  Value lane = b.bitAnd(NVVM::ThreadIdXOp::create(b, b.getI32Type()), 31);
  Value last = b.sub(b.sub(queries, b.i32(1)), tile.query);
  Value first, begin, end, beyond;
  for (int64_t row = 0; row < tileQ; row += 32) {
    Value query = minSigned(b, b.add(lane, row), last);
    auto [from, to] = loadRange(tile.batch, b.add(tile.query, query));
    first = first ? minSigned(b, first, from) : from;
    begin = begin ? maxSigned(b, begin, from) : from;
    end = end ? minSigned(b, end, to) : to;
    beyond = beyond ? maxSigned(b, beyond, to) : to;
  }
  using Kind = NVVM::ReduxKind;
  auto limit = [&](Value key) {
    return minSigned(b, maxSigned(b, fromOrigin(tile, key), b.i32(0)),
                     tile.keys);
  };
  first = limit(reduceLanes(b, first, Kind::MIN));
  begin = limit(reduceLanes(b, begin, Kind::MAX));
  end = limit(reduceLanes(b, end, Kind::MIN));
  beyond = limit(reduceLanes(b, beyond, Kind::MAX));
  tile.begin = b.max(tile.begin, b.div(first, tileK));
  tile.end =
      b.max(b.min(tile.end, b.ceilDiv(beyond, tileK)), b.add(tile.begin, 1));
  tile.fullBegin = b.max(tile.fullBegin, b.ceilDiv(begin, tileK));
  tile.fullEnd = b.min(tile.fullEnd, b.div(end, tileK));
  tile.fullBegin = b.min(b.max(tile.fullBegin, tile.begin), tile.end);
  tile.fullEnd = b.min(b.max(tile.fullEnd, tile.fullBegin), tile.end);
}

void AttentionTiles::setRange(AttentionTile &tile) const {
  Value zero = b.i32(0);
  Value keys = tile.keys, diagonal = tile.diagonal;
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
  if (tile.start) {
    begin = maxSigned(b, begin, tile.start);
    tile.fullBegin = b.max(tile.fullBegin, b.ceilDiv(tile.start, tileK));
  }
  tile.begin = b.div(begin, tileK);
  // A tile of which no query sees a key takes one that is all masked.
  tile.end = b.max(b.ceilDiv(end, tileK), b.add(tile.begin, 1));
  tile.fullBegin = b.min(b.max(tile.fullBegin, tile.begin), tile.end);
  tile.fullEnd = b.min(b.max(tile.fullEnd, tile.fullBegin), tile.end);
}
