//===- Lift.cpp - The warps that lift packed weights ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage has 64 bytes of codes for each row and 128 of K, and a word with the
// exponents of each 32. A lane takes 16 bytes, which share an exponent, and
// makes 32 bytes of them. Its magnitudes are bytes of a table entry, selected
// by the codes themselves: two byte permutations for eight. Two more bring the
// signs to where they belong.
//
// A warp takes 8 rows at a time: 512 bytes in a row, swizzled by as many bytes
// as a row has, and in the 128-byte swizzle 8 of its lanes write to all banks.
// Warps that do not share a stage take turns, so that one waits for a barrier
// while others lift.
//
//===----------------------------------------------------------------------===//

#include "Lift.h"
#include "../Blocks/BulkCopy.h"
#include "LiftBytes.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Rows of a unit, which a warp lifts at a time, and units under way.
static constexpr int64_t kUnit = 8, kUnitsTogether = 2;
static constexpr int64_t kEntryBytes = 8;

static Value permute(KernelBuilder &b, Value low, Value high, Value selector) {
  return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, selector,
                                 NVVM::PermuteMode::DEFAULT);
}

void sm90::buildLiftTable(const MatmulContext &kernel) {
  KernelBuilder &b = kernel.b;
  if (hasByteFactors(kernel.layout.lift->lifting))
    return buildFactorTable(kernel);
  if (kernel.hasLiftFactorWarp())
    return;
  Value entry = kernel.thread;
  b.ifThen(b.less(entry, b.i32(16)), [&] {
    // Where all are normal numbers, one more is one more in their exponents.
    // 0.5, 1 and 1.5 are subnormal for the first three exponents, the others
    // for the first one.
    Value exponents = b.mul(entry, 0x08080808);
    Value low = b.select(
        b.less(entry, b.i32(3)),
        arith::ShLIOp::create(b, b.i32(0x03020100), entry),
        // Zero stays zero.
        b.bitAnd(b.sub(exponents, b.i32(0x04081000)), int64_t(0xffffff00)));
    Value high = b.add(exponents, 0x0c080400);
    high = b.select(b.equal(entry, 0), b.i32(0x0c080604), high);
    // 512 and 768 are larger than any E4M3.
    high = b.select(b.equal(entry, 15), b.i32(0x7e7e7c78), high);
    Value place = b.add(b.mul(entry, kEntryBytes),
                        b.i32(kernel.layout.lift->offsetTable));
    Value address = b.offset(kernel.shared, place);
    b.store(low, address);
    b.store(high, b.offset(address, b.i32(4)));
  });
}

namespace {
class Lifter {
public:
  Lifter(const MatmulContext &kernel, Value warp);

  /// Lifts the codes of a stage, which are those of K block `k`.
  void liftStage(Value stage, Value k);

private:
  /// What a lane has of a unit before it is lifted.
  struct Unit {
    Value codes, exponent;
  };
  Unit load(Value number, Value stage, Value k);
  void lift(const Unit &unit, Value number, Value stage);

  const MatmulContext &kernel;
  KernelBuilder &b;
  const LiftLayout &layout;
  std::optional<ByteLifter> bytes;
  /// Where lifted rows begin, and bytes to those of the next stage.
  int64_t offset, stride;
  Value warp;
  /// Where in a unit the lane's codes are.
  Value codes;
  /// Where in a unit the lane writes its 16 bytes, twice.
  std::array<Value, 2> places;
};
} // namespace

Lifter::Lifter(const MatmulContext &kernel, Value warp)
    : kernel(kernel), b(kernel.b), layout(*kernel.layout.lift), warp(warp) {
  bool swapped = kernel.config.getSwapAb();
  offset = swapped ? kernel.layout.offsetRows : kernel.layout.offsetCols;
  stride = (swapped ? kernel.layout.rows : kernel.layout.cols).getBytes();
  if (kernel.hasLiftFactorWarp())
    bytes.emplace(kernel);
  codes = layout.packed.getSwizzled(
      b, b.mul(kernel.lane, kUnit * layout.packed.getRowBytes() / 32));
  Value row = b.shiftRight(kernel.lane, 2);
  Value chunk = b.mul(b.bitAnd(kernel.lane, 3), 2);
  for (int64_t half = 0; half < 2; ++half)
    places[half] = b.add(b.mul(row, kRowBytes),
                         b.mul(b.bitXor(b.add(chunk, half), row), 16));
}

Lifter::Unit Lifter::load(Value number, Value stage, Value k) {
  int64_t codeBytes = kUnit * layout.packed.getRowBytes();
  int64_t ofLane = codeBytes / 32;
  Value place =
      b.add(b.add(b.mul(stage, layout.codeStride), b.mul(number, codeBytes)),
            b.add(codes, layout.offsetCodes));
  Value exponent = b.add(
      b.add(b.mul(stage, layout.exponentStride), b.mul(number, kUnit * 4)),
      b.add(bytes ? bytes->getPlace(k) : kernel.lane, layout.offsetExponents));
  Unit unit;
  unit.codes = b.load(b.offset(kernel.shared, place),
                      VectorType::get({ofLane / 4}, b.getI32Type()));
  unit.exponent = arith::ExtUIOp::create(
      b, b.getI32Type(),
      b.load(b.offset(kernel.shared, exponent), b.getI8Type()));
  return unit;
}

/// The same of arranged codes: signs lie between the selectors, those of the
/// second word four bits below.
std::array<Value, 2> sm90::liftArrangedWord(KernelBuilder &b, Value codes,
                                            Value low, Value high) {
  Value magnitudes = b.bitAnd(codes, 0x77777777);
  Value signs[] = {codes, arith::ShLIOp::create(b, codes, b.i32(4))};
  std::array<Value, 2> words;
  for (int64_t i = 0; i < 2; ++i)
    words[i] = arith::OrIOp::create(
        b, permute(b, low, high, b.shiftRight(magnitudes, 16 * i)),
        b.bitAnd(signs[i], int64_t(0x80808080)));
  return words;
}

std::array<Value, 2> sm90::liftWord(KernelBuilder &b, Value codes, Value low,
                                    Value high) {
  auto shiftLeft = [&](Value value, int64_t bits) -> Value {
    return arith::ShLIOp::create(b, value, b.i32(bits));
  };
  // With the highest bit of a selector a permutation repeats signs.
  Value magnitudes = b.bitAnd(codes, 0x77777777);
  // Upper halves of bytes have their signs in place, lower ones four bits
  // below.
  Value ofLower = shiftLeft(codes, 4);
  std::array<Value, 2> words;
  for (int64_t i = 0; i < 2; ++i) {
    Value selected = permute(b, low, high, b.shiftRight(magnitudes, 16 * i));
    Value signs = permute(b, ofLower, codes, b.i32(i == 0 ? 0x5140 : 0x7362));
    words[i] =
        arith::OrIOp::create(b, selected, b.bitAnd(signs, int64_t(0x80808080)));
  }
  return words;
}

void Lifter::lift(const Unit &unit, Value number, Value stage) {
  Type i32 = b.getI32Type();
  Value place = b.add(b.add(b.mul(stage, stride), offset),
                      b.mul(number, kUnit * kRowBytes));
  if (bytes)
    return bytes->lift(unit.codes, unit.exponent, place, places);
  Value entry = b.add(b.mul(b.bitAnd(unit.exponent, 15), kEntryBytes),
                      layout.offsetTable);
  Value table =
      b.load(b.offset(kernel.shared, entry), VectorType::get({2}, i32));
  auto extract = [&](Value vector, int64_t i) -> Value {
    return LLVM::ExtractElementOp::create(b, vector, b.i32(i));
  };
  Value low = extract(table, 0), high = extract(table, 1);
  auto vector = VectorType::get({4}, i32);
  std::array<Value, 2> halves;
  halves.fill(LLVM::UndefOp::create(b, vector));
  for (int64_t i = 0; i < 4; ++i) {
    Value codes = extract(unit.codes, i);
    bool isArranged = kernel.spec.b.isArranged;
    std::array<Value, 2> pair = isArranged
                                    ? liftArrangedWord(b, codes, low, high)
                                    : liftWord(b, codes, low, high);
    // An arranged word has a half of either 16 bytes.
    for (int64_t j = 0; j < 2; ++j) {
      Value &half = isArranged ? halves[j] : halves[i / 2];
      int64_t at = isArranged ? i : i % 2 * 2 + j;
      half = LLVM::InsertElementOp::create(b, half, pair[j], b.i32(at));
    }
  }
  for (auto [half, words] : llvm::enumerate(halves))
    b.store(words, b.offset(kernel.shared, b.add(place, places[half])));
}

void Lifter::liftStage(Value stage, Value k) {
  int64_t units = layout.extent / kUnit;
  for (int64_t first = 0; first < units;
       first += kUnitsTogether * layout.sharing) {
    auto liftSome = [&](int64_t count) {
      SmallVector<std::pair<Value, Unit>> loaded;
      for (int64_t i = 0; i < count; ++i) {
        Value number = b.add(warp, first + i * layout.sharing);
        loaded.emplace_back(number, load(number, stage, k));
      }
      for (const auto &[number, unit] : loaded)
        lift(unit, number, stage);
    };
    int64_t whole = std::min((units - first) / layout.sharing, kUnitsTogether);
    if (whole > 0)
      liftSome(whole);
    int64_t next = first + whole * layout.sharing;
    if (whole == kUnitsTogether || next >= units)
      continue;
    Value number = b.add(warp, next);
    b.ifThen(b.less(number, b.i32(units)),
             [&] { lift(load(number, stage, k), number, stage); });
  }
}

void sm90::buildLifter(const MatmulContext &kernel,
                       const TileScheduler &scheduler, Ring ring, Ring packed,
                       Value warp) {
  KernelBuilder &b = kernel.b;
  const LiftLayout &layout = *kernel.layout.lift;
  int64_t turns = layout.getTurns();
  Lifter lifter(kernel, b.rem(warp, layout.sharing));
  auto lift = [&](RingPosition position, Value k) {
    // The producer has waited for the stage to be empty.
    packed.waitFull(position);
    lifter.liftStage(position.stage, k);
    // Tensor cores read it through the async proxy.
    fenceForBulkCopies(b);
    NVVM::SyncWarpOp::create(b, b.i32(-1));
    b.ifThen(b.equal(kernel.lane, 0), [&] {
      NVVM::MBarrierArriveOp::create(b, /*res=*/Type(),
                                     ring.getFullBarrier(position.stage),
                                     /*count=*/Value());
    });
  };
  // How many stages from here it is this warp's turn.
  SmallVector<Value> initial{b.i32(0), b.i32(0), b.div(warp, layout.sharing)};
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         initial, [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           return b.loop(
               tile.kBegin, tile.kEnd, b.i32(1), carried,
               [&](Value k, ValueRange carried) -> SmallVector<Value> {
                 RingPosition position{carried[0], carried[1]};
                 Value left = carried[2];
                 if (turns == 1) {
                   lift(position, k);
                 } else {
                   Value isNow = b.equal(left, 0);
                   b.ifThen(isNow, [&] { lift(position, k); });
                   left = b.sub(b.select(isNow, b.i32(turns), left), b.i32(1));
                 }
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase, left};
               });
         });
}
