//===- AttentionTiles.cpp - Which block computes which queries ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTiles.h"

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
    : b(b), spec(spec), tileQ(config.getTileQ()), tileK(config.getTileK()),
      queries(params.lookup("queries")), keys(params.lookup("keys")) {
  Type i32 = b.getI32Type();
  first = NVVM::BlockIdXOp::create(b, i32);
  stride = NVVM::GridDimXOp::create(b, i32);
  diagonal = spec.bottomRight ? b.sub(keys, queries) : b.i32(0);
  tilesOfHead = b.ceilDiv(queries, tileQ);
  heads = b.mul(params.lookup("batch"), spec.heads);
  count = b.mul(tilesOfHead, heads);
  // Heads of Q that share one of K count once.
  int64_t bytesOfKey =
      (spec.headDim + spec.headDimOfV) * spec.getElementBytes();
  Value headsOfK = b.max(
      b.div(b.i32(kBytesInL2 / bytesOfKey), b.max(keys, b.i32(1))), b.i32(1));
  together = b.min(b.mul(headsOfK, spec.heads / spec.headsOfK), heads);
}

AttentionTile AttentionTiles::getTile(Value item) const {
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
