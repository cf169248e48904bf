//===- AttentionBackwardScores.cpp - Gradients of scores ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has a key, its lane, and half of a step's queries.
//
//===----------------------------------------------------------------------===//

#include "../Attention/AttentionScores.h"
#include "../Attention/Softmax.h"
#include "../Blocks/BulkCopy.h"
#include "../Blocks/Hazards.h"
#include "../Blocks/Rounding.h"
#include "AttentionBackwardContext.h"
#include "Tcgen05.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Queries of a thread, and columns of results that are in registers at a time.
static constexpr int64_t kQueries = 64, kColumns = 32;

namespace {
class BackwardScores {
public:
  explicit BackwardScores(const AttentionBackwardContext &kernel);
  void build();

private:
  /// Numbers of `count` queries of this thread's, from number `first` on.
  SmallVector<Value> loadRows(Value stage, int64_t which, int64_t first);
  SmallVector<Value> mask(ArrayRef<Value> scores, BackwardStep step,
                          int64_t first);
  SmallVector<Value> maskByRanges(ArrayRef<Value> scores, Value stage,
                                  int64_t first);
  /// P of some queries, as words of two; `slopes` become those of a cap.
  SmallVector<Value> exponentiate(ArrayRef<Value> scores, BackwardStep step,
                                  Value stage, Value hides, int64_t first,
                                  SmallVector<Value> &slopes);
  /// G of the same, from P and slopes as they were rounded.
  SmallVector<Value> differentiate(ArrayRef<Value> p, ArrayRef<Value> slopes,
                                   ArrayRef<Value> products, Value stage,
                                   int64_t first);
  SmallVector<Value> pack(ArrayRef<Value> numbers);
  SmallVector<Value> unpack(ArrayRef<Value> words);
  /// Writes G of some queries to shared memory.
  void leave(ArrayRef<Value> words, int64_t first);
  void step(BackwardStep step, RingPosition at, Value phase);
  /// Stores sums of the warp's lanes that are in `column` on.
  void store(int64_t column, const SwizzledMatrix &matrix, int64_t offset,
             StringRef map, float factor);

  const AttentionBackwardContext &kernel;
  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  const AttentionBackwardMemory &memory;
  const AttentionBackwardTiles &tiles;
  Ring scores, products, rows;
  /// Which half of the queries; the key among the block's (i32).
  Value half, key;
  Value factor;
  std::optional<Cap> cap;
  /// Queries whose scores are in registers at a time: slopes are beside these.
  int64_t atOnce;
};
} // namespace

BackwardScores::BackwardScores(const AttentionBackwardContext &kernel)
    : kernel(kernel), b(kernel.b), spec(kernel.spec), memory(kernel.memory),
      tiles(kernel.tiles), scores(kernel.scores), products(kernel.products),
      rows(kernel.rows), half(b.shiftRight(kernel.warp, 2)),
      key(b.bitAnd(kernel.thread, 127)), atOnce(kernel.spec.cap ? 16 : 32) {
  constexpr float kLog2E = 0x1.715476p0f;
  factor = b.f32(spec.scale * kLog2E);
  if (spec.cap)
    cap.emplace(b, *spec.cap, factor);
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

SmallVector<Value> BackwardScores::loadRows(Value stage, int64_t which,
                                            int64_t first) {
  auto four = VectorType::get({4}, b.getF32Type());
  Value begin = b.offset(kernel.getRows(stage, which),
                         b.mul(b.add(b.mul(half, kQueries), first), 4));
  SmallVector<Value> numbers;
  for (int64_t i = 0; i < atOnce; i += 4) {
    Value loaded = LLVM::LoadOp::create(b, four, b.offset(begin, b.i32(i * 4)),
                                        /*alignment=*/16);
    for (int64_t j = 0; j < 4; ++j)
      numbers.push_back(LLVM::ExtractElementOp::create(b, loaded, b.i32(j)));
  }
  return numbers;
}

SmallVector<Value> BackwardScores::mask(ArrayRef<Value> scores,
                                        BackwardStep step, int64_t first) {
  // The thread's first query; all relative to it.
  Value query = b.add(b.mul(step.tile, kernel.tileQ),
                      b.add(b.mul(half, kQueries), first));
  Value place = b.add(tiles.key, launder(b, key));
  Value own = b.sub(b.sub(place, tiles.diagonal), query);
  Softmax::Window window;
  Value from = spec.right ? b.sub(own, b.i32(*spec.right)) : b.i32(0);
  // No query sees keys that are not there.
  window.from[0] = b.select(b.less(place, tiles.keys), from, b.i32(1 << 30));
  if (spec.left)
    window.to[0] = b.add(own, *spec.left);
  Value one = b.f32(1.0f);
  return Softmax(b, kLaneScores, {one, one}, /*logOfP=*/0.0f,
                 /*polynomials=*/0)
      .mask(scores, window);
}

SmallVector<Value> BackwardScores::maskByRanges(ArrayRef<Value> scores,
                                                Value stage, int64_t first) {
  Value own = launder(b, key), hidden = b.f32(-kInfinity);
  Value ranges = b.offset(kernel.getRows(stage, 2),
                          b.mul(b.add(b.mul(half, kQueries), first), 2));
  SmallVector<Value> masked(scores);
  // A word has the ranges of two queries, a byte for each end.
  for (size_t i = 0; i < scores.size(); i += 2) {
    Value both = b.load(b.offset(ranges, b.i32(static_cast<int64_t>(2 * i))),
                        b.getI32Type());
    for (size_t j : {0, 1}) {
      auto get = [&](size_t number) {
        return b.bitAnd(b.shiftRight(both, static_cast<int64_t>(number) * 8),
                        0xff);
      };
      Value isSeen = b.bitAnd(
          b.less(own, get(2 * j + 1)),
          arith::CmpIOp::create(b, arith::CmpIPredicate::uge, own, get(2 * j)));
      masked[i + j] = b.select(isSeen, scores[i + j], hidden);
    }
  }
  return masked;
}

SmallVector<Value> BackwardScores::pack(ArrayRef<Value> numbers) {
  SmallVector<Value> words;
  for (size_t i = 0; i < numbers.size(); i += 2)
    words.push_back(LLVM::BitcastOp::create(
        b, b.getI32Type(),
        roundPair(b, spec.grad, numbers[i], numbers[i + 1])));
  return words;
}

SmallVector<Value> BackwardScores::unpack(ArrayRef<Value> words) {
  auto pair = VectorType::get({2}, spec.grad);
  SmallVector<Value> numbers;
  for (Value word : words) {
    Value both = LLVM::BitcastOp::create(b, pair, word);
    for (int64_t i : {0, 1}) {
      Value number = LLVM::ExtractElementOp::create(b, both, b.i32(i));
      numbers.push_back(arith::ExtFOp::create(b, b.getF32Type(), number));
    }
  }
  return numbers;
}

SmallVector<Value> BackwardScores::exponentiate(ArrayRef<Value> scores,
                                                BackwardStep step, Value stage,
                                                Value hides, int64_t first,
                                                SmallVector<Value> &slopes) {
  SmallVector<Value> visible = b.choose(
      hides,
      [&] {
        return spec.hasKeyRanges ? maskByRanges(scores, stage, first)
                                 : mask(scores, step, first);
      },
      [&] { return SmallVector<Value>(scores); });
  SmallVector<Value> offsets = loadRows(stage, 0, first), powers, parts;
  for (auto [score, offset] : llvm::zip_equal(visible, offsets)) {
    if (!cap) {
      powers.push_back(Softmax::exp2(
          b, LLVM::FMAOp::create(b, b.getF32Type(), score, factor, offset)));
      continue;
    }
    Value share, bent = cap->bend(score, &share);
    parts.push_back(cap->getSlope(share));
    Value power = Softmax::exp2(b, arith::AddFOp::create(b, bent, offset));
    // A cap is as far as a hidden score bends.
    Value isHidden = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, score,
                                           b.f32(-kInfinity));
    powers.push_back(b.select(isHidden, b.f32(0.0f), power));
  }
  llvm::append_range(slopes, pack(parts));
  return pack(powers);
}

SmallVector<Value> BackwardScores::differentiate(ArrayRef<Value> p,
                                                 ArrayRef<Value> slopes,
                                                 ArrayRef<Value> products,
                                                 Value stage, int64_t first) {
  SmallVector<Value> grads;
  for (auto [power, product, delta] :
       llvm::zip_equal(unpack(p), products, loadRows(stage, 1, first)))
    grads.push_back(b.mulF(power, arith::AddFOp::create(b, product, delta)));
  if (cap)
    for (auto [grad, slope] : llvm::zip_equal(grads, unpack(slopes)))
      grad = b.mulF(grad, slope);
  return pack(grads);
}

/// Stores words, four at a time, to row `row` (i32) of a matrix at byte `place`
/// (i32), from its chunk `chunk` (i32) of 16 bytes on.
static void storeRow(KernelBuilder &b, ArrayRef<Value> words,
                     const SwizzledMatrix &matrix, Value shared, Value place,
                     Value row, Value chunk) {
  auto four = VectorType::get({4}, b.getI32Type());
  for (size_t i = 0; i < words.size(); i += 4) {
    Value all = LLVM::UndefOp::create(b, four);
    for (size_t j = 0; j < 4; ++j)
      all = LLVM::InsertElementOp::create(b, all, words[i + j],
                                          b.i32(static_cast<int64_t>(j)));
    Value at = matrix.locate(b, row, b.add(chunk, static_cast<int64_t>(i / 4)));
    LLVM::StoreOp::create(b, all, b.offset(shared, b.add(place, at)),
                          /*alignment=*/16);
  }
}

void BackwardScores::leave(ArrayRef<Value> words, int64_t first) {
  Value chunk = b.add(b.mul(half, kQueries / 8), first / 8);
  storeRow(b, words, memory.scores, kernel.shared, b.i32(memory.offsetScores),
           launder(b, key), chunk);
}

void BackwardScores::step(BackwardStep step, RingPosition at, Value phase) {
  Value zero = b.i32(0);
  auto give = [&](Ring ring, Value stage) {
    fenceBeforeSync(b);
    NVVM::SyncWarpOp::create(b, b.i32(-1));
    ring.release(stage, kernel.lane);
  };
  rows.waitFull(at);
  Value hides = hidesSome(kernel, step, at.stage);
  scores.waitFull({zero, phase});
  fenceAfterSync(b);
  Value ofScores = b.add(kernel.getColumn(0), b.mul(half, kQueries));
  SmallVector<Value> p, slopes;
  for (int64_t first = 0; first < kQueries; first += atOnce)
    llvm::append_range(
        p, exponentiate(
               loadColumns(b, MemoryColumns{b.add(ofScores, first), atOnce}),
               step, at.stage, hides, first, slopes));
  storeColumns(b, ofScores, p, /*waits=*/true);
  give(scores, zero);
  products.waitFull({zero, phase});
  fenceAfterSync(b);
  Value ofProducts =
      b.add(kernel.getColumn(memory.columnOfProducts), b.mul(half, kQueries));
  for (int64_t first = 0; first < kQueries; first += atOnce) {
    SmallVector<Value> taken =
        loadColumns(b, MemoryColumns{b.add(ofProducts, first), atOnce});
    ArrayRef<Value> ofP = p, ofSlopes = slopes;
    leave(differentiate(ofP.slice(first / 2, atOnce / 2),
                        cap ? ofSlopes.slice(first / 2, atOnce / 2)
                            : ArrayRef<Value>(),
                        taken, at.stage, first),
          first);
  }
  fenceForBulkCopies(b);
  give(products, zero);
  rows.release(at.stage, kernel.lane);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void BackwardScores::store(int64_t column, const SwizzledMatrix &matrix,
                           int64_t offset, StringRef map, float factor) {
  Value hasSteps = b.less(b.i32(0), tiles.steps);
  for (int64_t first = 0; first < spec.headDim; first += kColumns) {
    SmallVector<Value> numbers = b.choose(
        hasSteps,
        [&] {
          return loadColumns(
              b, MemoryColumns{kernel.getColumn(column + first), kColumns});
        },
        [&] { return SmallVector<Value>(kColumns, b.f32(0.0f)); });
    for (Value &number : numbers)
      number = b.mulF(number, b.f32(factor));
    storeRow(b, pack(numbers), matrix, kernel.shared, b.i32(offset), key,
             b.i32(first / 8));
  }
  fenceForBulkCopies(b);
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  Value firstRow = b.mul(b.bitAnd(kernel.warp, 3), 32);
  b.electOne([&] {
    for (int64_t box = 0; box < matrix.getBoxes(); ++box) {
      Value from = b.add(b.mul(firstRow, matrix.width),
                         offset + box * matrix.getBoxBytes());
      bulkStore(b, kernel.getParam(map), b.offset(kernel.shared, from),
                kernel.getCoordinates(b.i32(box * matrix.getBoxColumns()),
                                      b.add(tiles.key, firstRow), tiles.headOfK,
                                      tiles.batch));
    }
    waitForReads(b, 0);
  });
}

void BackwardScores::build() {
  Ring keys = kernel.keys, sums = kernel.sums;
  Value zero = b.i32(0);
  forEachStep(kernel, rows,
              [&](BackwardStep now, RingPosition at, Value phase) {
                step(now, at, phase);
              });
  b.ifThen(b.less(zero, tiles.steps), [&] { sums.waitFull({zero, zero}); });
  fenceAfterSync(b);
  // Copies of what nobody has waited for would come after what is written here.
  for (int64_t stage : {0, 1})
    keys.waitFull({b.i32(stage), zero});
  b.ifThenElse(
      b.equal(half, 0),
      [&] {
        store(memory.columnOfV, memory.v, memory.offsetV, "dv.map", 1.0f);
      },
      [&] {
        store(memory.columnOfK, memory.k, memory.offsetK, "dk.map", spec.scale);
      });
}

void sm100::buildBackwardScores(const AttentionBackwardContext &kernel) {
  BackwardScores(kernel).build();
}
