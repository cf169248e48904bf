//===- AttentionParts.cpp - Attention of few queries ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decoding has a few queries and many keys: the heads that share keys share a
// tile, and blocks share the keys, as FlashDecoding has it (Tri Dao and others,
// 2023). The block that comes last adds the parts in their order: which one it
// is does not show.
//
//===----------------------------------------------------------------------===//

#include "AttentionParts.h"
#include "../Blocks/BulkCopy.h"
#include "../Blocks/Hazards.h"
#include "../Blocks/Rounding.h"
#include "../Blocks/SplitK.h"
#include "AttentionRows.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;

/// The threads of the one warpgroup, and its barrier.
static constexpr int64_t kThreads = 128, kBarrier = 1;
/// Columns that a lane has beside each other when parts are put together.
static constexpr int64_t kLaneColumns = 4;
/// Parts whose sums are under way at a time.
static constexpr int64_t kPartsTogether = 4;

PartsLayout::PartsLayout(const AttentionSpec &spec, int64_t tileRows,
                         int64_t tileHeads)
    : rows(tileRows), columns(spec.headDimOfV) {
  if (!ShapedType::isDynamic(spec.queries))
    rows = std::min(rows, std::max<int64_t>(spec.queries, 1) * tileHeads);
}

int64_t fp8::getSplitTiles(const AttentionSpec &spec, int64_t tileK) {
  constexpr int64_t kBytes = 65536;
  int64_t bytes =
      tileK * spec.getElementBytes() * (spec.headDim + spec.headDimOfV);
  return std::max<int64_t>(llvm::divideCeil(kBytes, bytes), 1);
}

AffineExpr fp8::addParts(AttentionSignature &made, const AttentionSpec &spec,
                         PartsLayout layout, int64_t tileHeads,
                         int64_t keysOfPart) {
  KernelSignature &signature = made.signature;
  AffineExpr tiles =
      made.batch *
      (spec.headsOfK * AttentionTiles::getTilesOfGroup(spec, tileHeads));
  // Those of an invariant operation have so many parts each.
  AffineExpr parts = tiles * (made.keys.floorDiv(keysOfPart) + 1);
  for (StringRef name : {"q", "output"}) {
    signature.addPointer(name + ".ptr", name);
    for (int64_t dim : {0, 1, 2})
      signature.addStride(name + ".stride" + Twine(dim), name, dim);
  }
  auto addScratch = [&](StringRef name, AffineExpr bytes, bool zero) {
    signature.addScratch(name, signature.addWorkspace(bytes, zero));
  };
  int64_t bytes = layout.getSize() * 4;
  AffineExpr blocks =
      getAffineConstantExpr(AttentionTiles::kMaxBlocks, tiles.getContext());
  addScratch("parts.ptr", (spec.invariant ? parts : blocks * 2) * bytes,
             /*zero=*/false);
  addScratch("counters.ptr", (spec.invariant ? tiles : blocks) * 4,
             /*zero=*/true);
  return parts;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value AttentionParts::getAddress(StringRef name, Type element,
                                 const AttentionTile &tile,
                                 const AttentionRow &row) {
  Value index = b.i64(0);
  Value batch = tile.batch;
  for (int64_t dim : {0, 1, 2}) {
    Value number = dim == 0                       ? batch
                   : dim == spec.getSequenceDim() ? row.query
                                                  : row.head;
    Value stride = kernel.getParam((name + ".stride" + Twine(dim)).str());
    index = b.add(index, b.mul(b.widen(number), stride));
  }
  return b.element(kernel.getParam((name + ".ptr").str()), index, element);
}

void AttentionParts::loadQueries(const AttentionTile &tile,
                                 const SwizzledMatrix &q, int64_t offset,
                                 int64_t copies) {
  auto words = VectorType::get({4}, b.getI32Type());
  int64_t rows = q.rows / copies;
  int64_t chunksOfRow = q.rowBytes / 16, chunks = rows * chunksOfRow;
  Value barrier = b.i32(kBarrier);
  b.namedBarrier(barrier, kThreads);
  // Rows that are not there are the first one's: nobody stores what they give.
  SmallVector<std::pair<Value, Value>> loaded;
  auto load = [&](Value number) {
    Value row = b.div(number, chunksOfRow);
    Value chunk = b.rem(number, chunksOfRow);
    Value from =
        b.offset(getAddress("q", spec.q, tile, kernel.tiles.getRow(tile, row)),
                 b.widen(b.mul(chunk, 16)));
    auto load = LLVM::LoadOp::create(b, words, from, /*alignment=*/16);
    load.setInvariant(true);
    loaded.emplace_back(load, b.add(q.locate(b, row, chunk), offset));
  };
  auto store = [&] {
    for (auto [value, place] : loaded)
      for (int64_t copy = 0; copy < copies; ++copy)
        LLVM::StoreOp::create(
            b, value,
            b.offset(kernel.shared, b.add(place, copy * rows * q.width)),
            /*alignment=*/16);
    loaded.clear();
  };
  int64_t first = 0;
  for (; first + kThreads <= chunks; first += kThreads)
    load(b.add(kernel.thread, first));
  store();
  if (first < chunks)
    b.ifThen(b.less(kernel.thread, b.i32(chunks - first)), [&] {
      load(b.add(kernel.thread, first));
      store();
    });
  fenceForBulkCopies(b);
  b.namedBarrier(barrier, kThreads);
}

Value AttentionParts::getRowNumber(int64_t half) {
  if (order == SumsOrder::Fours)
    return lane;
  return b.add(b.add(b.mul(b.shiftRight(thread, 5), 16), b.shiftRight(lane, 2)),
               8 * half);
}

AttentionRow AttentionParts::getOwnRow(const AttentionTile &tile,
                                       int64_t half) {
  // Addresses of rows would be in registers all through the loop over keys.
  thread = launder(b, kernel.thread);
  lane = b.bitAnd(thread, 31);
  return kernel.tiles.getRow(tile, getRowNumber(half));
}

Value AttentionParts::storesOfRow() {
  if (order == SumsOrder::Fours)
    return b.less(thread, b.i32(32));
  return b.equal(b.bitAnd(lane, 3), 0);
}

void AttentionParts::forEachRun(
    ArrayRef<Value> sums, int64_t half,
    llvm::function_ref<void(Value column, int64_t more, ValueRange)> store) {
  if (order == SumsOrder::Fours) {
    Value column = b.mul(b.shiftRight(thread, 5), 4);
    for (size_t first = 0; first < sums.size(); first += 4)
      store(column, static_cast<int64_t>(4 * first),
            ValueRange(sums.slice(first, 4)));
    return;
  }
  Value quad = b.bitAnd(lane, 3);
  size_t row = 2 * half;
  if (order == SumsOrder::Quads) {
    for (size_t first = 0; first < sums.size(); first += 8) {
      auto at = [&](size_t i) { return sums[first + row + i]; };
      store(b.add(b.mul(quad, 4), static_cast<int64_t>(2 * first)), /*more=*/0,
            {at(0), at(4), at(1), at(5)});
    }
    return;
  }
  for (size_t first = 0; first < sums.size(); first += 4)
    store(b.add(b.mul(quad, 2), static_cast<int64_t>(2 * first)), /*more=*/0,
          {sums[first + row], sums[first + row + 1]});
}

/// `values`, f32, stored beside each other.
static void storeFloats(KernelBuilder &b, ValueRange values, Value address) {
  auto size = static_cast<int64_t>(values.size());
  Value all = LLVM::UndefOp::create(b, VectorType::get({size}, b.getF32Type()));
  for (auto [i, value] : llvm::enumerate(values))
    all = LLVM::InsertElementOp::create(b, all, value,
                                        b.i32(static_cast<int64_t>(i)));
  LLVM::StoreOp::create(b, all, address, /*alignment=*/4 * size);
}

void AttentionParts::storeNumbers(ValueRange numbers, Value address) {
  auto words = static_cast<int64_t>(numbers.size()) / 2;
  Value all =
      LLVM::UndefOp::create(b, VectorType::get({words}, b.getI32Type()));
  for (int64_t i = 0; i < words; ++i) {
    Value word = LLVM::BitcastOp::create(
        b, b.getI32Type(),
        roundPair(b, spec.output, numbers[2 * i], numbers[2 * i + 1]));
    all = LLVM::InsertElementOp::create(b, all, word, b.i32(i));
  }
  LLVM::StoreOp::create(b, all, address, /*alignment=*/4 * words);
}

void AttentionParts::storeWhole(const AttentionTile &tile, ArrayRef<Value> sums,
                                ArrayRef<Softmax::Total> totals, float logOfP) {
  for (int64_t half = 0, e = static_cast<int64_t>(totals.size()); half < e;
       ++half) {
    AttentionRow row = getOwnRow(tile, half);
    Value exponent = totals[half].exponent, power = totals[half].sum;
    Value factor =
        getFactorOfSums(kernel, tile, row.head, exponent, power, logOfP);
    b.ifThen(row.isThere, [&] {
      Value address = getAddress("output", spec.output, tile, row);
      forEachRun(
          sums, static_cast<int64_t>(half),
          [&](Value column, int64_t more, ValueRange numbers) {
            SmallVector<Value> scaled;
            for (Value number : numbers)
              scaled.push_back(b.mulF(number, factor));
            Value first = b.element(address, b.widen(column), spec.output);
            storeNumbers(scaled, b.element(first, b.i64(more), spec.output));
          });
      if (!spec.hasLse)
        return;
      Value lse = Softmax::getLogSum(b, exponent, power, logOfP);
      b.ifThen(storesOfRow(),
               [&] { storeLse(kernel, tile, row.head, row.query, lse); });
    });
  }
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

Value AttentionParts::getSums(const AttentionTile &tile, Value part,
                              Value row) {
  Value place = b.widen(kernel.tiles.getPlace(tile, part));
  Value index = b.add(b.mul(place, layout.getSize()),
                      b.widen(b.mul(row, layout.columns)));
  return b.element(kernel.getParam("parts.ptr"), index, b.getF32Type());
}

Value AttentionParts::getPowers(const AttentionTile &tile, Value part,
                                Value row) {
  Value place = b.widen(kernel.tiles.getPlace(tile, part));
  Value index =
      b.add(b.mul(place, layout.getSize()),
            b.widen(b.add(b.mul(row, 2), layout.rows * layout.columns)));
  return b.element(kernel.getParam("parts.ptr"), index, b.getF32Type());
}

void AttentionParts::leavePart(const AttentionTile &tile, ArrayRef<Value> sums,
                               ArrayRef<Softmax::Total> totals) {
  Value part = kernel.tiles.getOwnPart(tile);
  for (int64_t half = 0, e = static_cast<int64_t>(totals.size()); half < e;
       ++half) {
    AttentionRow row = getOwnRow(tile, half);
    Value number = getRowNumber(half);
    b.ifThen(row.isThere, [&] {
      Value address = getSums(tile, part, number);
      forEachRun(
          sums, half, [&](Value column, int64_t more, ValueRange numbers) {
            Value first = b.element(address, b.widen(column), b.getF32Type());
            storeFloats(b, numbers,
                        b.element(first, b.i64(more), b.getF32Type()));
          });
      b.ifThen(storesOfRow(), [&] {
        storeFloats(b, {totals[half].exponent, totals[half].sum},
                    getPowers(tile, part, number));
      });
    });
  }
}

/// `combine` of all lanes.
static Value reduceWarp(KernelBuilder &b, Value value,
                        llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t distance : {16, 8, 4, 2, 1}) {
    Value other = NVVM::ShflOp::create(
        b, b.getF32Type(), b.i32(-1), value, b.i32(distance), b.i32(31),
        NVVM::ShflKind::bfly, /*return_value_and_is_valid=*/UnitAttr());
    value = combine(value, other);
  }
  return value;
}

SmallVector<Value> AttentionParts::combineParts(const AttentionTile &tile,
                                                Value number, Value first,
                                                ValueRange carried) {
  Type f32 = b.getF32Type();
  Value parts = tile.parts, last = b.sub(parts, b.i32(1));
  // A lane has the exponent and the powers of one part.
  Value part = b.add(first, lane);
  Value isThere = b.less(part, parts);
  Value ofPart = getPowers(tile, b.min(part, last), number);
  Value exponent = b.select(isThere, b.load(ofPart, f32),
                            b.f32(-std::numeric_limits<float>::infinity()));
  Value powers = b.select(
      isThere, b.load(b.element(ofPart, b.i64(1), f32), f32), b.f32(0.0f));
  Value largest = reduceWarp(b, exponent, [&](Value lhs, Value rhs) -> Value {
    return arith::MaxNumFOp::create(b, lhs, rhs);
  });
  largest = arith::MaxNumFOp::create(b, largest, carried[0]);
  Value finite = Softmax::makeFinite(b, largest);
  auto power = [&](Value exponent) {
    return Softmax::exp2(b, arith::SubFOp::create(b, exponent, finite));
  };
  Value weight = power(exponent), correction = power(carried[0]);
  Value sum =
      reduceWarp(b, b.mulF(weight, powers), [&](Value lhs, Value rhs) -> Value {
        return arith::AddFOp::create(b, lhs, rhs);
      });
  sum = LLVM::FMAOp::create(b, f32, carried[1], correction, sum);
  SmallVector<Value> sums;
  for (Value before : carried.drop_front(2))
    sums.push_back(b.mulF(before, correction));
  Value here = b.min(b.sub(parts, first), b.i32(32));
  auto four = VectorType::get({kLaneColumns}, f32);
  sums = b.loop(
      b.i32(0), here, b.i32(kPartsTogether), sums,
      [&](Value i, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> loaded, weights, sums(carried);
        for (int64_t j = 0; j < kPartsTogether; ++j) {
          Value from = b.add(i, j);
          // Parts beyond the last have a weight of 0.
          weights.push_back(NVVM::ShflOp::create(
              b, f32, b.i32(-1), weight, from, b.i32(31), NVVM::ShflKind::idx,
              /*return_value_and_is_valid=*/UnitAttr()));
          Value row = getSums(tile, b.min(b.add(first, from), last), number);
          for (size_t group = 0; group * kLaneColumns < sums.size(); ++group) {
            Value column = b.add(b.mul(lane, kLaneColumns),
                                 static_cast<int64_t>(group) * 128);
            column = b.select(b.less(column, b.i32(layout.columns)), column,
                              b.i32(0));
            loaded.push_back(LLVM::LoadOp::create(
                b, four, b.element(row, b.widen(column), f32),
                /*alignment=*/16));
          }
        }
        size_t groups = sums.size() / kLaneColumns;
        for (auto [i, value] : llvm::enumerate(loaded))
          for (int64_t j = 0; j < kLaneColumns; ++j) {
            Value &sum = sums[i % groups * kLaneColumns + j];
            sum = LLVM::FMAOp::create(
                b, f32, LLVM::ExtractElementOp::create(b, value, b.i32(j)),
                weights[i / groups], sum);
          }
        return sums;
      });
  SmallVector<Value> next{largest, sum};
  llvm::append_range(next, sums);
  return next;
}

SmallVector<Value> AttentionParts::mergeParts(const AttentionTile &tile,
                                              Value number,
                                              ValueRange initial) {
  Type f32 = b.getF32Type();
  auto two = VectorType::get({2}, f32);
  auto four = VectorType::get({kLaneColumns}, f32);
  auto groups = static_cast<int64_t>(initial.size() - 2) / kLaneColumns;
  Value last = b.sub(tile.parts, b.i32(1));
  auto get = [&](Value vector, int64_t i) -> Value {
    return LLVM::ExtractElementOp::create(b, vector, b.i32(i));
  };
  // All loads come before what waits for them. Parts beyond the first have no
  // powers.
  auto step = [&](Value from, ValueRange carried) -> SmallVector<Value> {
    SmallVector<Value> isThere, powers, loaded;
    for (int64_t i = 0; i < kPartsTogether; ++i) {
      Value back = b.add(from, i);
      Value part = b.sub(last, b.min(back, last));
      isThere.push_back(b.less(back, tile.parts));
      powers.push_back(LLVM::LoadOp::create(
          b, two, getPowers(tile, part, number), /*alignment=*/8));
      Value row = getSums(tile, part, number);
      for (int64_t group = 0; group < groups; ++group) {
        Value column = b.add(b.mul(lane, kLaneColumns), group * 128);
        column =
            b.select(b.less(column, b.i32(layout.columns)), column, b.i32(0));
        loaded.push_back(
            LLVM::LoadOp::create(b, four, b.element(row, b.widen(column), f32),
                                 /*alignment=*/16));
      }
    }
    Softmax::Total total{carried[0], carried[1]};
    SmallVector<Value> sums(carried.drop_front(2));
    for (int64_t i = 0; i < kPartsTogether; ++i) {
      Softmax::Total none = Softmax::getNone(b);
      Softmax::Total part{
          b.select(isThere[i], get(powers[i], 0), none.exponent),
          b.select(isThere[i], get(powers[i], 1), none.sum)};
      auto [ofTotal, ofPart] = Softmax::merge(b, total, part);
      for (auto [j, sum] : llvm::enumerate(sums)) {
        auto column = static_cast<int64_t>(j);
        Value added = get(loaded[i * groups + column / kLaneColumns],
                          column % kLaneColumns);
        sum = LLVM::FMAOp::create(b, f32, sum, ofTotal, b.mulF(added, ofPart));
      }
    }
    SmallVector<Value> next{total.exponent, total.sum};
    llvm::append_range(next, sums);
    return next;
  };
  return b.loop(b.i32(0), tile.parts, b.i32(kPartsTogether), initial, step);
}

void AttentionParts::combineRow(const AttentionTile &tile, Value number,
                                float logOfP) {
  AttentionRow row = kernel.tiles.getRow(tile, number);
  b.ifThen(row.isThere, [&] {
    int64_t groups = llvm::divideCeil(layout.columns, 32 * kLaneColumns);
    SmallVector<Value> initial(2 + groups * kLaneColumns, b.f32(0.0f));
    initial[0] = b.f32(-std::numeric_limits<float>::infinity());
    SmallVector<Value> all =
        spec.invariant
            ? mergeParts(tile, number, initial)
            : b.loop(b.i32(0), tile.parts, b.i32(32), initial,
                     [&](Value first, ValueRange carried) {
                       return combineParts(tile, number, first, carried);
                     });
    Value factor =
        getFactorOfSums(kernel, tile, row.head, all[0], all[1], logOfP);
    Value address = getAddress("output", spec.output, tile, row);
    for (int64_t group = 0; group < groups; ++group) {
      Value column = b.add(b.mul(lane, kLaneColumns), group * 128);
      b.ifThen(b.less(column, b.i32(layout.columns)), [&] {
        SmallVector<Value> numbers;
        for (int64_t i = 0; i < kLaneColumns; ++i)
          numbers.push_back(b.mulF(all[2 + group * kLaneColumns + i], factor));
        storeNumbers(numbers, b.element(address, b.widen(column), spec.output));
      });
    }
    if (spec.hasLse)
      b.ifThen(b.equal(lane, 0), [&] {
        storeLse(kernel, tile, row.head, row.query,
                 Softmax::getLogSum(b, all[0], all[1], logOfP));
      });
  });
}

void AttentionParts::combine(const AttentionTile &tile, float logOfP) {
  b.loop(b.shiftRight(thread, 5), b.i32(layout.rows), b.i32(kThreads / 32),
         ValueRange(), [&](Value number, ValueRange) -> SmallVector<Value> {
           combineRow(tile, number, logOfP);
           return {};
         });
}

void AttentionParts::storeOnlyPart(const AttentionTile &tile,
                                   ArrayRef<Value> sums,
                                   ArrayRef<Softmax::Total> totals,
                                   float logOfP) {
  SmallVector<Value> merged(sums);
  SmallVector<Softmax::Total> ofAll;
  SmallVector<std::pair<Value, Value>> weights;
  for (const Softmax::Total &part : totals) {
    ofAll.push_back(Softmax::getNone(b));
    weights.push_back(Softmax::merge(b, ofAll.back(), part));
  }
  for (auto [i, sum] : llvm::enumerate(merged)) {
    auto [ofNone, ofPart] =
        weights[kFragmentScores.getRow(static_cast<int64_t>(i))];
    sum = LLVM::FMAOp::create(b, b.getF32Type(), b.f32(0.0f), ofNone,
                              b.mulF(sum, ofPart));
  }
  storeWhole(tile, merged, ofAll, logOfP);
}

void AttentionParts::store(const AttentionTile &tile, ArrayRef<Value> sums,
                           ArrayRef<Softmax::Total> totals, float logOfP) {
  auto storeAll = [&] {
    if (spec.invariant)
      storeOnlyPart(tile, sums, totals, logOfP);
    else
      storeWhole(tile, sums, totals, logOfP);
  };
  auto storePart = [&] {
    leavePart(tile, sums, totals);
    Value counter =
        b.element(kernel.getParam("counters.ptr"),
                  b.widen(kernel.tiles.getCounter(tile)), b.getI32Type());
    Value isLast = arriveLast(b, counter, tile.parts,
                              b.offset(kernel.shared, b.i32(offsetFlag)),
                              b.i32(kBarrier), kernel.thread, kThreads);
    b.ifThen(isLast, [&] { combine(tile, logOfP); });
  };
  b.ifThenElse(b.equal(tile.parts, 1), storeAll, storePart);
}
