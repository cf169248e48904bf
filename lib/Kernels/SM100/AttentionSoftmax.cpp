//===- AttentionSoftmax.cpp - The warpgroups that exponentiate ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has a query, whose scores are in a lane of tensor memory, and so are
// its sums.
//
//   for tiles from the last: S -> registers;  P = softmax(S)
//                            if the largest score grew: O is scaled
//                            P -> tensor memory, over S
//   O / sum is stored
//
// When scores are complete, so are all products that were issued before, those
// with the P before among them: until P is there nobody else has the sums.
//
//===----------------------------------------------------------------------===//

#include "../Attention/AttentionDropout.h"
#include "../Attention/AttentionRows.h"
#include "../Attention/AttentionScores.h"
#include "../Blocks/BulkCopy.h"
#include "../Blocks/Hazards.h"
#include "../Blocks/Rounding.h"
#include "AttentionContext.h"
#include "AttentionQuarters.h"
#include "Tcgen05.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

/// Columns of sums that are in registers at a time, beside scores.
static constexpr int64_t kSumColumns = 16;

namespace {
class AttentionSoftmax {
public:
  explicit AttentionSoftmax(const AttentionContext &kernel);
  void build();

private:
  /// What a tile of keys hands on to the next: the row, the phase of the
  /// scores, and where its values are.
  struct State {
    Value max, sum, phase;
    RingPosition v;
    SmallVector<Value> pack() const {
      return {max, sum, phase, v.stage, v.phase};
    }
    static State unpack(ValueRange values) {
      return {values[0], values[1], values[2], {values[3], values[4]}};
    }
  };

  void setSoftmax(const AttentionTile &tile);
  /// Takes a tile of keys' scores and gives P for them; the first has no sums
  /// before it.
  void step(const AttentionTile &tile, Value number, State &state, bool masked,
            bool isFirst);
  /// Tiles from the last but one down to the first.
  void walk(const AttentionTile &tile, State &state);
  /// Scales the sums, if those of any row of the warp grew less.
  void correct(Value correction);
  /// Powers of tile `number` of keys, with 0 for those that are left out.
  SmallVector<Value> drop(const AttentionTile &tile, Value number,
                          ArrayRef<Value> powers);
  /// Rounds powers, and writes them over the scores.
  void giveP(ArrayRef<Value> powers);
  /// Writes zeros over values of keys that are not the batch's.
  void hideValues(const AttentionTile &tile, Value number, RingPosition at,
                  bool isFirst);
  void store(const AttentionTile &tile, const State &state);
  /// Columns of a box, times `factor`, to shared memory and from there on.
  void storeBox(const AttentionTile &tile, int64_t box, Value factor);

  const AttentionContext &kernel;
  KernelBuilder &b;
  const AttentionSpec &spec;
  const AttentionMemory &memory;
  Ring scores, sums, ringOfV;
  /// Which half this is, and where the warp's scores and sums are (i32).
  Value half, ofScores, ofSums;
  std::optional<Softmax> softmax;
  std::optional<AttentionScores> capAndMask;
  std::optional<AttentionDropout> dropout;
  /// What this warp has of few queries.
  std::optional<AttentionQuarters> quarters;
  /// The rows and keys that the warp's scores are of.
  const AttentionBlock *block;
};
} // namespace

AttentionSoftmax::AttentionSoftmax(const AttentionContext &kernel)
    : kernel(kernel), b(kernel.b), spec(kernel.spec), memory(kernel.memory),
      scores(kernel.scores), sums(kernel.sums), ringOfV(kernel.v),
      half(b.shiftRight(kernel.warp, 2)), block(&kernel) {
  // The quarter of the lanes that the warp reaches.
  Value lanes = b.mul(b.bitAnd(kernel.warp, 3), int64_t(32) << 16);
  ofScores = b.add(kernel.getScores(half), lanes);
  ofSums = b.add(kernel.getSums(half), lanes);
  if (spec.dropThreshold)
    dropout.emplace(b, kernel.getParam("dropout.ptr"), spec.dropThreshold);
  if (kernel.config.isForFewQueries()) {
    quarters.emplace(kernel);
    block = &quarters->getBlock();
  }
}

//===----------------------------------------------------------------------===//
// A tile of keys
//===----------------------------------------------------------------------===//

void AttentionSoftmax::correct(Value correction) {
  Value grew = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, correction,
                                     b.f32(1.0f));
  Value any = NVVM::VoteSyncOp::create(b, b.getI1Type(), b.i32(-1), grew,
                                       NVVM::VoteSyncKind::any);
  b.ifThen(any, [&] {
    // Rows of few queries are stored at once, and need the registers that
    // addresses would have all through the loop.
    Value from = quarters ? launder(b, ofSums) : ofSums;
    for (int64_t first = 0, count; first < spec.headDimOfV; first += count) {
      count = std::min(spec.headDimOfV - first, kSumColumns);
      Value address = b.add(from, first);
      SmallVector<Value> words;
      for (Value sum : loadColumns(b, MemoryColumns{address, count}))
        words.push_back(arith::BitcastOp::create(b, b.getI32Type(),
                                                 b.mulF(sum, correction)));
      // P is waited for, and this with it.
      storeColumns(b, address, words, /*waits=*/false);
    }
  });
}

SmallVector<Value> AttentionSoftmax::drop(const AttentionTile &tile,
                                          Value number,
                                          ArrayRef<Value> powers) {
  SmallVector<Value> kept(powers);
  if (!dropout)
    return kept;
  // What is computed of it would be in registers all through the loop.
  Value query = b.add(tile.query, launder(b, kernel.thread));
  Value head = b.add(b.mul(tile.batch, spec.heads), tile.head);
  Value ofKeys = b.mul(number, kernel.tileK / 4);
  for (size_t first = 0; first < powers.size(); first += 16) {
    SmallVector<Value> areKept = dropout->areKeptOfQuery(
        query, b.add(ofKeys, static_cast<int64_t>(first / 4)), head);
    for (auto [i, isKept] : llvm::enumerate(areKept))
      kept[first + i] = b.select(isKept, kept[first + i], b.f32(0.0f));
  }
  return kept;
}

void AttentionSoftmax::giveP(ArrayRef<Value> powers) {
  SmallVector<Value> words;
  if (spec.getElementBytes() == 2) {
    for (size_t i = 0; i < powers.size(); i += 2)
      words.push_back(LLVM::BitcastOp::create(
          b, b.getI32Type(), roundPair(b, spec.v, powers[i], powers[i + 1])));
  } else {
    auto halves = VectorType::get({2}, b.getI16Type());
    for (size_t i = 0; i < powers.size(); i += 4) {
      Value word = LLVM::UndefOp::create(b, halves);
      for (size_t pair : {0, 1}) {
        Value codes = NVVM::ConvertF32x2ToF8x2Op::create(
            b, b.getI16Type(), powers[i + 2 * pair + 1], powers[i + 2 * pair],
            NVVM::FPRoundingMode::RN, NVVM::SaturationMode::SATFINITE,
            /*relu=*/false, spec.v);
        word = LLVM::InsertElementOp::create(b, word, codes,
                                             b.i32(static_cast<int64_t>(pair)));
      }
      words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), word));
    }
  }
  Value ofP = ofScores;
  if (quarters) {
    quarters->clearOthers(ofScores, words.size());
    ofP = quarters->getOwn(ofScores, words.size());
  }
  storeColumns(b, ofP, words, /*waits=*/true);
  fenceBeforeSync(b);
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  scores.release(half, kernel.lane);
}

void AttentionSoftmax::hideValues(const AttentionTile &tile, Value number,
                                  RingPosition at, bool isFirst) {
  Value before = kernel.getKeysBefore(tile, number);
  Value there;
  if (isFirst && spec.hasRestBehindKeys())
    there = kernel.getKeysThere(tile, number);
  if (!before && !there)
    return;
  Value hides = b.i1(false);
  if (before)
    hides = isBefore(b, b.i32(0), before);
  if (there)
    hides =
        arith::OrIOp::create(b, hides, isBefore(b, there, b.i32(kernel.tileK)));
  // The first half does it for both: its products come first.
  b.ifThen(b.bitAnd(hides, b.equal(half, 0)), [&] {
    ringOfV.waitFull(at);
    hideRows(kernel, memory.v,
             kernel.getPlace(memory.v, memory.offsetV, at.stage), kQueries,
             [&](Value row) {
               Value hidden = b.i1(false);
               if (before)
                 hidden = isBefore(b, row, before);
               if (there)
                 hidden = arith::OrIOp::create(
                     b, hidden, isBefore(b, there, b.add(row, 1)));
               return hidden;
             });
    fenceForBulkCopies(b);
  });
}

void AttentionSoftmax::step(const AttentionTile &tile, Value number,
                            State &state, bool masked, bool isFirst) {
  scores.waitFull({half, state.phase});
  fenceAfterSync(b);
  Value from = quarters ? quarters->getOwn(ofScores, block->tileK) : ofScores;
  Value ofBlock = quarters ? quarters->getNumber(number) : number;
  SmallVector<Value> taken = loadColumns(b, MemoryColumns{from, block->tileK});
  taken = capAndMask->apply(taken, ofBlock, /*isLast=*/isFirst);
  if (masked) {
    taken = softmax->mask(taken, getWindow(*block, kLaneScores, tile, ofBlock));
    hideValues(tile, number, state.v, isFirst);
  }
  Softmax::Rows rows;
  rows.max[0] = state.max;
  rows.sum[0] = state.sum;
  Softmax::Step step = softmax->raise(taken, rows);
  if (!isFirst)
    correct(step.corrections[0]);
  giveP(drop(tile, number, softmax->exponentiate(taken, rows, step)));
  state = {rows.max[0], rows.sum[0], b.bitXor(state.phase, b.i32(1)),
           ringOfV.advance(state.v)};
}

void AttentionSoftmax::walk(const AttentionTile &tile, State &state) {
  forEachRunOfKeys(kernel, tile, [&](Value from, Value to, bool masked) {
    state = State::unpack(
        b.loop(b.i32(0), b.sub(from, to), b.i32(1), state.pack(),
               [&](Value i, ValueRange carried) {
                 State state = State::unpack(carried);
                 Value number = b.sub(b.sub(from, i), b.i32(1));
                 step(tile, number, state, masked, /*isFirst=*/false);
                 return state.pack();
               }));
  });
}

//===----------------------------------------------------------------------===//
// All tiles
//===----------------------------------------------------------------------===//

void AttentionSoftmax::setSoftmax(const AttentionTile &tile) {
  Value factors[2];
  SmallVector<AttentionRow> rows;
  if (quarters)
    rows.push_back(quarters->getRow(tile));
  else
    rows = getMaskedRows(kernel, kLaneScores, tile);
  factors[0] =
      getFactorOfScores(kernel, tile, quarters ? rows[0].head : tile.head);
  capAndMask.emplace(*block, kLaneScores, tile, factors, rows);
  if (AttentionScores::makesExponents(spec))
    factors[0] = b.f32(1.0f);
  softmax.emplace(b, kLaneScores, factors, std::log2(spec.factorOfP),
                  kernel.config.getPolynomials());
}

void AttentionSoftmax::storeBox(const AttentionTile &tile, int64_t box,
                                Value factor) {
  const SwizzledMatrix &output = memory.output;
  int64_t columns = output.getBoxColumns();
  Value place =
      b.add(b.mul(kernel.warp, output.getBytes()), memory.offsetOutput);
  SmallVector<Value> numbers =
      loadColumns(b, MemoryColumns{b.add(ofSums, box * columns), columns});
  // The copy before has read what this writes.
  b.electOne([&] { waitForReads(b, 0); });
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  // Addresses would be in registers all through the loop over keys.
  Value lane = launder(b, kernel.lane);
  auto four = VectorType::get({4}, b.getI32Type());
  for (int64_t first = 0; first < columns; first += 8) {
    Value words = LLVM::UndefOp::create(b, four);
    for (int64_t i = 0; i < 4; ++i) {
      Value pair =
          roundPair(b, spec.output, b.mulF(numbers[first + 2 * i], factor),
                    b.mulF(numbers[first + 2 * i + 1], factor));
      words = LLVM::InsertElementOp::create(
          b, words, LLVM::BitcastOp::create(b, b.getI32Type(), pair), b.i32(i));
    }
    Value chunk = output.locate(b, lane, b.i32(first / 8));
    LLVM::StoreOp::create(b, words,
                          b.offset(kernel.shared, b.add(place, chunk)),
                          /*alignment=*/16);
  }
  fenceForBulkCopies(b);
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  b.electOne([&] {
    bulkStore(b, kernel.getParam("output.map"), b.offset(kernel.shared, place),
              kernel.getCoordinates(
                  b.i32(box * columns),
                  b.add(tile.query, b.mul(kernel.warp, kStoredRows)), tile.head,
                  tile.batch));
  });
}

void AttentionSoftmax::store(const AttentionTile &tile, const State &state) {
  Softmax::Rows rows;
  rows.max[0] = state.max;
  Value exponent = softmax->getExponent(rows, 0), sum = state.sum;
  if (quarters)
    return quarters->store(tile, {exponent, sum}, ofSums, softmax->getLogOfP());
  Value factor = getFactorOfSums(kernel, tile, tile.head, exponent, sum,
                                 softmax->getLogOfP());
  if (spec.hasLse) {
    Value query = b.add(tile.query, kernel.thread);
    b.ifThen(b.less(query, kernel.tiles.getQueries()), [&] {
      storeLse(kernel, tile, tile.head, query,
               Softmax::getLogSum(b, exponent, sum, softmax->getLogOfP()));
    });
  }
  int64_t boxes = spec.headDimOfV / memory.output.getBoxColumns();
  for (int64_t box = 0; box < boxes; ++box)
    storeBox(tile, box, factor);
}

void AttentionSoftmax::build() {
  const AttentionTiles &tiles = kernel.tiles;
  Value zero = b.i32(0);
  b.loop(tiles.getFirst(), tiles.getCount(), tiles.getStride(),
         {zero, zero, zero, zero},
         [&](Value item, ValueRange carried) -> SmallVector<Value> {
           AttentionTile tile = tiles.getTile(item);
           setSoftmax(tile);
           if (quarters)
             quarters->loadQueries(tile);
           Softmax::Rows rows = softmax->getInitial();
           State state{
               rows.max[0], rows.sum[0], carried[0], {carried[1], carried[2]}};
           step(tile, b.sub(tile.end, b.i32(1)), state, /*masked=*/true,
                /*isFirst=*/true);
           walk(tile, state);
           sums.waitFull({half, carried[3]});
           fenceAfterSync(b);
           store(tile, state);
           return {state.phase, state.v.stage, state.v.phase,
                   b.bitXor(carried[3], b.i32(1))};
         });
  // Shared memory is read until the block ends.
  b.electOne([&] { waitForReads(b, 0); });
}

void sm100::buildAttentionSoftmax(const AttentionContext &kernel) {
  AttentionSoftmax(kernel).build();
}
