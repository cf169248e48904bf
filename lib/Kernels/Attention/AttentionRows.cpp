//===- AttentionRows.cpp - What rows of scores are and become -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"
#include "../Blocks/Hazards.h"
#include "fp8/IR/Dropout.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Factors and sums
//===----------------------------------------------------------------------===//

/// The number of an operand, of Q, K and V.
static int64_t getNumber(StringRef name) {
  return name == "q" ? 0 : name == "k" ? 1 : 2;
}

Value fp8::getFactorAt(const AttentionBlock &kernel, StringRef name,
                       Value batch, Value head, Value position) {
  KernelBuilder &b = kernel.b;
  const AttentionSpec &spec = kernel.spec;
  int64_t number = getNumber(name);
  bool ofQ = number == 0;
  auto positions = static_cast<int32_t>(spec.positionsOfFactor[number]);
  int64_t heads = ofQ ? spec.heads : spec.headsOfK;
  Value blocks =
      b.ceilDiv(kernel.getParam(ofQ ? "queries" : "keys"), positions);
  Value block = b.div(position, positions);
  bool isBSHD = spec.layout == fp8::AttentionLayout::BSHD;
  Value first = isBSHD ? b.add(b.mul(b.mul(batch, blocks), heads), head)
                       : b.mul(b.add(b.mul(batch, heads), head), blocks);
  // One register for all through a loop over keys, not the address of each.
  first = launder(b, first);
  Value index = b.add(first, isBSHD ? b.mul(block, heads) : block);
  Value place = b.element(kernel.getParam(name.str() + "_scale.ptr"),
                          b.widen(index), b.getF32Type());
  // Without keys there are none, but there are factors of queries.
  Value any = kernel.getParam("q_scale.ptr");
  return b.loadConstant(b.select(b.less(block, blocks), place, any),
                        b.getF32Type());
}

Value fp8::getFactorOf(const AttentionBlock &kernel, StringRef name,
                       Value batch, Value head) {
  KernelBuilder &b = kernel.b;
  const AttentionSpec &spec = kernel.spec;
  int64_t number = getNumber(name);
  bool ofQ = number == 0;
  // Tiles of keys have those already.
  if (spec.positionsOfFactor[number])
    return b.f32(1.0f);
  Value pointer = kernel.getParam(name.str() + "_scale.ptr");
  if (spec.hasHeadFactors[number]) {
    Value number = b.add(b.mul(batch, ofQ ? spec.heads : spec.headsOfK), head);
    pointer = b.element(pointer, b.widen(number), b.getF32Type());
  }
  return b.loadConstant(pointer, b.getF32Type());
}

Value fp8::getFactorOfScores(const AttentionBlock &kernel,
                             const AttentionTile &tile, Value head,
                             Value query) {
  constexpr float log2E = 0x1.715476p0f;
  KernelBuilder &b = kernel.b;
  Value factor = b.f32(kernel.spec.scale * log2E);
  if (!kernel.spec.isScaled)
    return factor;
  Value ofQueries = query ? getFactorAt(kernel, "q", tile.batch, head, query)
                          : getFactorOf(kernel, "q", tile.batch, head);
  Value ofOperands =
      b.mulF(ofQueries, getFactorOf(kernel, "k", tile.batch, tile.headOfK));
  // An infinite distance stays infinite.
  return arith::MaxNumFOp::create(b, b.mulF(factor, ofOperands),
                                  b.f32(0x1p-126f));
}

Value fp8::addSink(const AttentionBlock &kernel, Value head, Value &exponent,
                   Value &sum, float logOfP) {
  if (!kernel.spec.hasSinks)
    return {};
  KernelBuilder &b = kernel.b;
  Value sink = b.loadConstant(
      b.element(kernel.getParam("sinks.ptr"), b.widen(head), b.getF32Type()),
      b.getF32Type());
  return Softmax::addScore(b, sink, exponent, sum, logOfP);
}

Value fp8::getFactorOfSums(const AttentionBlock &kernel,
                           const AttentionTile &tile, Value head,
                           Value &exponent, Value &sum, float logOfP) {
  KernelBuilder &b = kernel.b;
  Value correction = addSink(kernel, head, exponent, sum, logOfP);
  Value factor = kernel.spec.isScaled
                     ? getFactorOf(kernel, "v", tile.batch, tile.headOfK)
                     : b.f32(1.0f);
  if (kernel.spec.dropThreshold)
    factor = b.mulF(factor, b.f32(getFactorOfKept(kernel.spec.dropThreshold)));
  Value isEmpty =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, b.f32(0.0f));
  factor =
      b.select(isEmpty, b.f32(0.0f), arith::DivFOp::create(b, factor, sum));
  return correction ? b.mulF(factor, correction) : factor;
}

void fp8::storeLse(const AttentionBlock &kernel, const AttentionTile &tile,
                   Value head, Value query, Value value) {
  KernelBuilder &b = kernel.b;
  Value ofAll = b.add(b.mul(tile.batch, kernel.spec.heads), head);
  Value index = b.add(b.mul(b.widen(ofAll), b.widen(kernel.tiles.getQueries())),
                      b.widen(query));
  b.store(value, b.element(kernel.getParam("lse.ptr"), index, b.getF32Type()));
}

//===----------------------------------------------------------------------===//
// Keys that a row sees
//===----------------------------------------------------------------------===//

Softmax::Window fp8::getWindow(const AttentionBlock &kernel, ScoreLayout layout,
                               const AttentionTile &tile, Value number) {
  KernelBuilder &b = kernel.b;
  const AttentionSpec &spec = kernel.spec;
  const AttentionTiles &tiles = kernel.tiles;
  Softmax::Window window;
  // Kept in registers all through the loop over keys, it would be for this.
  Value thread = launder(b, kernel.thread);
  Value column = layout.getFirstColumn(b, thread);
  Value row = layout.getFirstRow(b, thread);
  // The thread's first key; all relative to it.
  Value key = b.add(b.mul(number, kernel.tileK), column);
  Value last = b.sub(b.sub(tile.keys, b.i32(1)), key);
  for (int64_t half = 0; half < layout.rows; ++half) {
    Value center = b.sub(tiles.getOwnKey(tile, b.add(row, 8 * half)), key);
    window.to[half] = last;
    if (spec.right)
      window.to[half] =
          b.createOrFold<arith::MinSIOp>(last, b.add(center, *spec.right));
    if (spec.left)
      window.from[half] = b.sub(center, b.i32(*spec.left));
    auto hideBefore = [&](Value first) {
      Value &from = window.from[half];
      from = from ? b.createOrFold<arith::MaxSIOp>(from, first) : first;
    };
    if (tile.start)
      hideBefore(b.sub(tile.start, key));
    if (auto range = tiles.getRange(tile, b.add(row, 8 * half))) {
      hideBefore(b.sub(range->first, key));
      window.to[half] = b.createOrFold<arith::MinSIOp>(
          window.to[half], b.sub(b.sub(range->second, b.i32(1)), key));
    }
  }
  return window;
}

SmallVector<AttentionRow> fp8::getMaskedRows(const AttentionBlock &kernel,
                                             ScoreLayout layout,
                                             const AttentionTile &tile) {
  if (!kernel.spec.mask)
    return {};
  return getOwnRows(kernel, layout, tile);
}

SmallVector<AttentionRow> fp8::getOwnRows(const AttentionBlock &kernel,
                                          ScoreLayout layout,
                                          const AttentionTile &tile) {
  KernelBuilder &b = kernel.b;
  SmallVector<AttentionRow> rows;
  Value last = b.sub(kernel.tiles.getQueries(), b.i32(1));
  Value first = layout.getFirstRow(b, kernel.thread);
  for (int64_t half = 0; half < layout.rows; ++half)
    rows.push_back({b.min(b.add(tile.query, b.add(first, 8 * half)), last),
                    tile.head, Value()});
  return rows;
}

void fp8::forEachRunOfKeys(
    const AttentionBlock &kernel, const AttentionTile &tile,
    llvm::function_ref<void(Value from, Value to, bool masked)> walk) {
  KernelBuilder &b = kernel.b;
  Value last = b.sub(tile.end, b.i32(1));
  Value fullEnd = b.min(tile.fullEnd, last);
  Value fullBegin = b.min(tile.fullBegin, fullEnd);
  bool hidesLast = kernel.spec.hidesLast();
  bool hidesFirst = kernel.spec.hidesFirst();
  if (hidesLast)
    walk(last, fullEnd, /*masked=*/true);
  // Without a limit on the right only the first tile reaches beyond the keys.
  walk(hidesLast ? fullEnd : last, hidesFirst ? fullBegin : tile.begin,
       /*masked=*/false);
  if (hidesFirst)
    walk(fullBegin, tile.begin, /*masked=*/true);
}

void fp8::hideRows(const AttentionBlock &kernel, const SwizzledMatrix &values,
                   Value place, int64_t threads,
                   llvm::function_ref<Value(Value row)> isHidden) {
  KernelBuilder &b = kernel.b;
  int64_t chunksOfRow = values.rowBytes / 16,
          chunks = values.rows * chunksOfRow;
  Value zeros = LLVM::ZeroOp::create(b, VectorType::get({4}, b.getI32Type()));
  for (int64_t first = 0; first < chunks; first += threads) {
    Value number = b.add(launder(b, kernel.thread), first);
    Value row = b.div(number, chunksOfRow);
    b.ifThen(b.bitAnd(isHidden(row), b.less(number, b.i32(chunks))), [&] {
      Value chunk = values.locate(b, row, b.rem(number, chunksOfRow));
      LLVM::StoreOp::create(b, zeros,
                            b.offset(kernel.shared, b.add(place, chunk)),
                            /*alignment=*/16);
    });
  }
}

Value fp8::isBefore(KernelBuilder &b, Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, lhs, rhs);
}
