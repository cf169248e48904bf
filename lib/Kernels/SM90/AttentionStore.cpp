//===- AttentionStore.cpp - Results of attention --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionStore.h"
#include "../Blocks/BulkCopy.h"
#include "../Blocks/Hazards.h"
#include "../Blocks/Rounding.h"
#include "fp8/IR/Dropout.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Raises `pointer` to the largest of a warp's magnitudes.
static void storeLargest(KernelBuilder &b, Value pointer, Value magnitude,
                         Value lane) {
  // Floats that are not negative order as their bits do.
  Value largest = NVVM::ReduxOp::create(
      b, b.getI32Type(), arith::BitcastOp::create(b, b.getI32Type(), magnitude),
      NVVM::ReduxKind::UMAX, b.i32(-1));
  b.ifThen(b.equal(lane, 0), [&] {
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, pointer, largest,
                              LLVM::AtomicOrdering::monotonic);
  });
}

/// Two numbers of the result's type as a word.
static Value packPair(KernelBuilder &b, Type type, Value first, Value second) {
  return LLVM::BitcastOp::create(b, b.getI32Type(),
                                 roundPair(b, type, first, second));
}

void AttentionStore::writeQuads(ArrayRef<Value> numbers) {
  const SharedMatrix &output = memory.output;
  Value row = b.add(getWarpRow(), b.shiftRight(lane, 2));
  Value quad = b.bitAnd(lane, 3);
  auto two = VectorType::get({2}, b.getI32Type());
  // The even ones of 16 columns came first: a thread has four neighbours.
  for (size_t first = 0; first < numbers.size(); first += 8)
    for (size_t half : {0, 2}) {
      Value words = LLVM::UndefOp::create(b, two);
      for (size_t i : {0, 1})
        words = LLVM::InsertElementOp::create(
            b, words,
            packPair(b, spec.output, numbers[first + half + i],
                     numbers[first + half + 4 + i]),
            b.i32(static_cast<int64_t>(i)));
      Value line = b.add(row, static_cast<int64_t>(half) * 4);
      Value chunk =
          b.add(b.shiftRight(quad, 1), static_cast<int64_t>(first / 8) * 2);
      Value at = b.add(
          b.add(output.locate(b, line, chunk), b.mul(b.bitAnd(quad, 1), 8)),
          memory.offsetOutput);
      LLVM::StoreOp::create(b, words, b.offset(kernel.shared, at),
                            /*alignment=*/8);
    }
}

void AttentionStore::writePairs(ArrayRef<Value> numbers) {
  SmallVector<Value> pairs;
  for (size_t i = 0; i < numbers.size(); i += 2)
    pairs.push_back(packPair(b, spec.output, numbers[i], numbers[i + 1]));
  // Rows 0 to 7 and 8 to 15 of 8 columns, then of the next 8.
  Value line = b.add(getWarpRow(), b.bitAnd(lane, 15));
  for (size_t first = 0; first < pairs.size(); first += 4) {
    Value chunk = b.add(b.shiftRight(lane, 4), static_cast<int64_t>(first / 2));
    Value at = b.add(memory.output.locate(b, line, chunk), memory.offsetOutput);
    NVVM::StMatrixOp::create(
        b, b.offset(kernel.shared, at), ArrayRef(pairs).slice(first, 4),
        NVVM::MMALayout::row,
        NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
        NVVM::LdStMatrixEltType::B16);
  }
}

/// Four numbers as a word of codes, or two as half of one.
static Value packCodes(KernelBuilder &b, Type type, ArrayRef<Value> numbers) {
  SmallVector<Value> halves;
  for (size_t i = 0; i < numbers.size(); i += 2)
    // The first operand goes to the upper half.
    halves.push_back(NVVM::ConvertF32x2ToF8x2Op::create(
        b, b.getI16Type(), numbers[i + 1], numbers[i], NVVM::FPRoundingMode::RN,
        NVVM::SaturationMode::SATFINITE, /*relu=*/false, type));
  if (halves.size() == 1)
    return halves[0];
  Value low = arith::ExtUIOp::create(b, b.getI32Type(), halves[0]);
  Value high = arith::ExtUIOp::create(b, b.getI32Type(), halves[1]);
  return arith::OrIOp::create(b, low,
                              arith::ShLIOp::create(b, high, b.i32(16)));
}

void AttentionStore::writeCodesOfQuads(ArrayRef<Value> numbers) {
  Value row = b.add(getWarpRow(), b.shiftRight(lane, 2));
  Value offset = b.mul(b.bitAnd(lane, 3), 4);
  for (size_t first = 0; first < numbers.size(); first += 8)
    for (size_t half : {0, 2}) {
      auto at = [&](size_t i) { return numbers[first + half + i]; };
      Value place =
          memory.output.locate(b, b.add(row, static_cast<int64_t>(half) * 4),
                               b.i32(static_cast<int64_t>(first / 8)));
      LLVM::StoreOp::create(
          b, packCodes(b, spec.output, {at(0), at(4), at(1), at(5)}),
          b.offset(kernel.shared,
                   b.add(b.add(place, offset), memory.offsetOutput)),
          /*alignment=*/4);
    }
}

void AttentionStore::writeCodesOfPairs(ArrayRef<Value> numbers) {
  Value row = b.add(getWarpRow(), b.shiftRight(lane, 2));
  Value offset = b.mul(b.bitAnd(lane, 3), 2);
  // Rows 0 to 7 and 8 to 15 of 8 columns, half of a chunk.
  for (size_t first = 0; first < numbers.size(); first += 4)
    for (size_t half : {0, 2}) {
      Value place =
          memory.output.locate(b, b.add(row, static_cast<int64_t>(half) * 4),
                               b.i32(static_cast<int64_t>(first / 8)));
      Value at = b.add(b.add(place, offset),
                       memory.offsetOutput + int64_t(first / 4 % 2) * 8);
      LLVM::StoreOp::create(
          b, packCodes(b, spec.output, numbers.slice(first + half, 2)),
          b.offset(kernel.shared, at), /*alignment=*/2);
    }
}

SmallVector<Value> AttentionStore::scaleForCodes(const AttentionTile &tile,
                                                 ArrayRef<Value> numbers) {
  SmallVector<Value> rounded =
      unpackFragment(b, spec.rounded, packFragment(b, spec.rounded, numbers));
  if (spec.hasAmax) {
    Value first = b.add(b.add(tile.query, getWarpRow()), b.shiftRight(lane, 2));
    Value largest = b.f32(0.0f);
    for (int64_t half : {0, 1}) {
      Value ofRow = b.f32(0.0f);
      for (auto [i, number] : llvm::enumerate(rounded))
        if (kFragmentScores.getRow(static_cast<int64_t>(i)) == half)
          // maxnum ignores NaN, as fp8.amax does.
          ofRow = arith::MaxNumFOp::create(b, ofRow,
                                           math::AbsFOp::create(b, number));
      // Rows behind the last query are computed of zeros.
      Value isThere = b.less(b.add(first, 8 * half), kernel.tiles.getQueries());
      largest = arith::MaxNumFOp::create(b, largest,
                                         b.select(isThere, ofRow, b.f32(0.0f)));
    }
    storeLargest(b, kernel.getParam("amax.ptr"), largest, lane);
  }
  Value scale = b.loadConstant(kernel.getParam("o_scale.ptr"), b.getF32Type());
  for (Value &number : rounded)
    number = b.mulF(number, scale);
  return rounded;
}

void AttentionStore::storeLse(const AttentionTile &tile, Softmax &softmax,
                              const Softmax::Rows &rows, const Value (&sums)[2],
                              const Value (&exponents)[2]) {
  Value head = b.add(b.mul(tile.batch, spec.heads), tile.head);
  Value queries = kernel.tiles.getQueries();
  Value isFirstOfQuad = b.equal(b.bitAnd(lane, 3), 0);
  for (int64_t half : {0, 1}) {
    Value query =
        b.add(b.add(b.add(tile.query, getWarpRow()), b.shiftRight(lane, 2)),
              8 * half);
    b.ifThen(b.bitAnd(b.less(query, queries), isFirstOfQuad), [&] {
      Value index =
          b.add(b.mul(b.widen(head), b.widen(queries)), b.widen(query));
      Value exponent =
          exponents[half] ? exponents[half] : softmax.getExponent(rows, half);
      b.store(Softmax::getLogSum(b, exponent, sums[half], softmax.getLogOfP()),
              b.element(kernel.getParam("lse.ptr"), index, b.getF32Type()));
    });
  }
}

void AttentionStore::store(const AttentionTile &tile, Softmax &softmax,
                           ArrayRef<Value> products, const Softmax::Rows &rows,
                           ArrayRef<Softmax::Total> totals) {
  thread = launder(b, kernel.thread);
  lane = b.bitAnd(thread, 31);
  // Without sinks exponents are left to those that store them.
  Value sums[2], factors[2], exponents[2];
  float ofKept = getFactorOfKept(spec.dropThreshold);
  Value factorOfV = b.f32(ofKept);
  if (spec.isScaled) {
    Value ofValues = getFactorOf(kernel, "v", tile.batch, tile.headOfK);
    factorOfV = spec.dropThreshold ? b.mulF(ofValues, factorOfV) : ofValues;
  }
  for (int64_t half : {0, 1}) {
    if (totals.empty()) {
      sums[half] = softmax.addLanes(rows.sum[half]);
    } else {
      sums[half] = totals[half].sum;
      exponents[half] = totals[half].exponent;
    }
    Value correction;
    if (spec.hasSinks) {
      if (totals.empty())
        exponents[half] = softmax.getExponent(rows, half);
      correction = addSink(kernel, tile.head, exponents[half], sums[half],
                           softmax.getLogOfP());
    }
    Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ,
                                          sums[half], b.f32(0.0f));
    Value quotient = arith::DivFOp::create(b, factorOfV, sums[half]);
    factors[half] = b.select(isEmpty, b.f32(0.0f), quotient);
    if (correction)
      factors[half] = b.mulF(factors[half], correction);
  }
  if (spec.hasLse)
    storeLse(tile, softmax, rows, sums, exponents);
  Value isFirstWarp = b.equal(b.bitAnd(kernel.warp, 3), 0);
  Value barrier = b.add(group, 1);
  // Copies of the results before have read what this writes.
  if (!memory.sharesQ()) {
    b.ifThen(isFirstWarp, [&] { b.electOne([&] { waitForReads(b, 0); }); });
    b.namedBarrier(barrier, 128);
  }
  SmallVector<Value> numbers =
      Softmax::scaleRows(b, kFragmentScores, products, factors);
  if (spec.rounded)
    numbers = scaleForCodes(tile, numbers);
  if (memory.hasTransposedV())
    spec.rounded ? writeCodesOfQuads(numbers) : writeQuads(numbers);
  else
    spec.rounded ? writeCodesOfPairs(numbers) : writePairs(numbers);
  fenceForBulkCopies(b);
  b.namedBarrier(barrier, 128);
  const SharedMatrix &output = memory.output;
  Value firstRow = b.mul(group, 64);
  auto copy = [&] {
    for (int64_t box = 0; box < output.getBoxes(); ++box) {
      Value from = b.add(b.mul(firstRow, output.width),
                         memory.offsetOutput + box * output.getBoxBytes());
      bulkStore(b, kernel.getParam("output.map"), b.offset(kernel.shared, from),
                kernel.getCoordinates(b.i32(box * output.getBoxColumns()),
                                      b.add(tile.query, firstRow), tile.head,
                                      tile.batch));
    }
    if (memory.sharesQ())
      waitForReads(b, 0);
  };
  b.ifThen(isFirstWarp, [&] { b.electOne(copy); });
}
