//===- AttentionBackwardAdder.cpp - What adds to dQ -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has a query, its lane. Sums of a tile are in global memory as
// threads have them: four columns of each, beside those of the next.
//
//===----------------------------------------------------------------------===//

#include "../Attention/AttentionBackwardTurns.h"
#include "../Blocks/Rounding.h"
#include "AttentionBackwardContext.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

/// Columns that are in registers at a time.
static constexpr int64_t kColumns = 32;

namespace {
class BackwardAdder {
public:
  explicit BackwardAdder(const AttentionBackwardContext &kernel)
      : kernel(kernel), b(kernel.b), spec(kernel.spec), tiles(kernel.tiles),
        parts(kernel.parts), added(kernel.added),
        row(b.bitAnd(kernel.thread, 127)) {}
  void build();

private:
  /// Where the sums of column `first` of this thread's query are.
  Value getSums(Value number, int64_t first);
  void add(Value sums, ArrayRef<Value> part);
  /// Adds what blocks before have added, stores the result, and leaves zeros.
  void store(BackwardStep step, Value sums, ArrayRef<Value> part,
             int64_t first);
  void step(BackwardStep step, RingPosition at, Value phase);

  const AttentionBackwardContext &kernel;
  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  const AttentionBackwardTiles &tiles;
  Ring parts, added;
  Value row;
};

/// The warp that gives turns. Tiles are stored by those that add.
class BackwardTurns : public AttentionBackwardTurns {
public:
  explicit BackwardTurns(const AttentionBackwardContext &kernel)
      : AttentionBackwardTurns(kernel, kernel.added, /*part=*/0, /*enders=*/1) {
  }
  void build() {
    clearUnseen();
    endInOrder();
  }

private:
  void storeTile(BackwardStep, Value) override {}
  void clearTile(BackwardStep step, Value number) override;
};
} // namespace

Value BackwardAdder::getSums(Value number, int64_t first) {
  Value place =
      b.add(b.mul(b.widen(number), spec.headDim / 4), b.i64(first / 4));
  place = b.add(b.mul(place, 128), b.widen(row));
  return b.element(kernel.getParam("sums.ptr"), b.mul(place, 4),
                   b.getF32Type());
}

void BackwardAdder::add(Value sums, ArrayRef<Value> part) {
  for (size_t i = 0; i < part.size(); i += 4) {
    SmallVector<Value> operands{
        b.offset(sums, b.i64(static_cast<int64_t>(i) * 128 * 4))};
    llvm::append_range(operands, part.slice(i, 4));
    b.ptx("red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};",
          operands);
  }
}

void BackwardAdder::store(BackwardStep step, Value sums, ArrayRef<Value> part,
                          int64_t first) {
  auto four = VectorType::get({4}, b.getF32Type());
  SmallVector<Value> words, loaded;
  auto getPlace = [&](size_t i) {
    return b.offset(sums, b.i64(static_cast<int64_t>(i) * 128 * 4));
  };
  for (size_t i = 0; i < part.size(); i += 4)
    loaded.push_back(
        LLVM::LoadOp::create(b, four, getPlace(i), /*alignment=*/16));
  for (size_t i = 0; i < part.size(); i += 4) {
    LLVM::StoreOp::create(b, LLVM::ZeroOp::create(b, four), getPlace(i),
                          /*alignment=*/16);
    SmallVector<Value> numbers;
    for (size_t j = 0; j < 4; ++j) {
      Value before = LLVM::ExtractElementOp::create(
          b, loaded[i / 4], b.i32(static_cast<int64_t>(j)));
      numbers.push_back(b.mulF(arith::AddFOp::create(b, before, part[i + j]),
                               b.f32(spec.scale)));
    }
    for (size_t j : {0, 2})
      words.push_back(LLVM::BitcastOp::create(
          b, b.getI32Type(),
          roundPair(b, spec.grad, numbers[j], numbers[j + 1])));
  }
  Value query = b.add(b.mul(step.tile, kernel.tileQ), row);
  b.ifThen(b.less(query, tiles.queries), [&] {
    Value to = getResultOf(kernel, step, query, b.i32(first));
    for (size_t i = 0; i < words.size(); i += 4) {
      Value all =
          LLVM::UndefOp::create(b, VectorType::get({4}, b.getI32Type()));
      for (size_t j = 0; j < 4; ++j)
        all = LLVM::InsertElementOp::create(b, all, words[i + j],
                                            b.i32(static_cast<int64_t>(j)));
      LLVM::StoreOp::create(b, all,
                            b.offset(to, b.i64(static_cast<int64_t>(i) * 4)),
                            /*alignment=*/16);
    }
  });
}

void BackwardAdder::step(BackwardStep step, RingPosition at, Value phase) {
  Value zero = b.i32(0), number = tiles.getNumber(step);
  BackwardKeys keys = tiles.getKeysOf(step.tile);
  Value isLast =
      b.equal(b.add(tiles.countBlocksBefore(keys), 1), tiles.countBlocks(keys));
  Value isSeen = spec.hasKeyRanges ? tiles.sees(keys) : b.i1(true);
  parts.waitFull({zero, phase});
  fenceAfterSync(b);
  // For this block's turn, with which the stage is given back.
  added.waitEmpty(at);
  for (int64_t first = 0; first < spec.headDim; first += kColumns) {
    SmallVector<Value> part = loadColumns(
        b,
        MemoryColumns{kernel.getColumn(kernel.memory.columnOfProducts + first),
                      kColumns});
    if (first + kColumns == spec.headDim) {
      fenceBeforeSync(b);
      NVVM::SyncWarpOp::create(b, b.i32(-1));
      parts.release(zero, kernel.lane);
    }
    b.ifThen(isSeen, [&] {
      Value sums = getSums(number, first);
      b.ifThenElse(
          isLast, [&] { store(step, sums, part, first); },
          [&] { add(sums, part); });
    });
  }
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  b.ifThen(b.equal(kernel.lane, 0), [&] {
    NVVM::MBarrierArriveOp::create(b, /*res=*/Type(),
                                   added.getFullBarrier(at.stage),
                                   /*count=*/Value());
  });
}

void BackwardAdder::build() {
  forEachStep(kernel, added,
              [&](BackwardStep now, RingPosition at, Value phase) {
                step(now, at, phase);
              });
}

void BackwardTurns::clearTile(BackwardStep step, Value) {
  auto four = VectorType::get({4}, b.getI32Type());
  int64_t chunks = spec.headDim / 8;
  b.loop(block.lane, b.i32(block.tileQ * chunks), b.i32(32), ValueRange(),
         [&](Value number, ValueRange) -> SmallVector<Value> {
           Value query =
               b.add(b.mul(step.tile, block.tileQ), b.div(number, chunks));
           b.ifThen(b.less(query, tiles.queries), [&] {
             LLVM::StoreOp::create(
                 b, LLVM::ZeroOp::create(b, four),
                 getResult(step, query, b.mul(b.rem(number, chunks), 8)),
                 /*alignment=*/16);
           });
           return {};
         });
}

void sm100::buildBackwardAdder(const AttentionBackwardContext &kernel) {
  BackwardAdder(kernel).build();
}

void sm100::buildBackwardTurns(const AttentionBackwardContext &kernel) {
  BackwardTurns(kernel).build();
}
