//===- LiftBytes.cpp - Codes with factors of a byte to bf16 ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A factor is a byte: its bf16 is looked up in shared memory. An E4M3 has its
// bits where a bf16 has them, which makes it 2^120 too small: two products
// make it right, of which the first one is exact. An E2M1 has too few bits for
// that to pay: both bytes of its bf16 are selected from eight.
//
// What comes out is what fp8.dequantize makes of it: the product has 8 bits at
// most, and is rounded once where it is subnormal.
//
//===----------------------------------------------------------------------===//

#include "LiftBytes.h"
#include "../Blocks/Hazards.h"
#include "../Matmul/MatmulArguments.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// 2^120 and NaN, as bf16.
static constexpr int64_t kTo120 = 0x7b80, kNaN = 0x7fc0;
static int64_t twice(int64_t half) { return half << 16 | half; }

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// The bf16 of an E8M0: its exponent.
static Value buildE8M0(KernelBuilder &b, Value byte) {
  Value bits = b.mul(byte, 1 << 7);
  // 2^-127 is subnormal.
  bits = b.select(b.equal(byte, 0), b.i32(0x40), bits);
  return b.select(b.equal(byte, 0xff), b.i32(kNaN), bits);
}

/// The bf16 of an E4M3.
static Value buildE4M3(KernelBuilder &b, Value byte) {
  Value magnitude = b.bitAnd(byte, 0x7f);
  Value small =
      LLVM::BitcastOp::create(b, b.getF32Type(), b.mul(magnitude, 1 << 20));
  Value scaled = LLVM::BitcastOp::create(b, b.getI32Type(),
                                         b.mulF(small, b.f32(0x1p120f)));
  Value bits = b.shiftRight(scaled, 16);
  bits = b.select(b.equal(magnitude, 0x7f), b.i32(kNaN), bits);
  return b.add(bits, b.mul(b.bitAnd(byte, 0x80), 1 << 8));
}

void sm90::buildFactorTable(const MatmulContext &kernel) {
  KernelBuilder &b = kernel.b;
  const LiftLayout &layout = *kernel.layout.lift;
  Value entry = kernel.thread;
  b.ifThen(b.less(entry, b.i32(256)), [&] {
    Value bits = layout.lifting == Lifting::NVFP4 ? buildE4M3(b, entry)
                                                  : buildE8M0(b, entry);
    Value place = b.add(b.mul(entry, 4), layout.offsetTable);
    b.store(b.mul(bits, 0x10001), b.offset(kernel.shared, place));
  });
}

/// Halves of the first word of a row's E8M0 that are another row's, of one that
/// is odd if `row` is.
static Value countHalvesBefore(const MatmulContext &kernel, Value row) {
  return beginWithinWords(kernel.spec) ? kernel.b.bitAnd(row, 1)
                                       : kernel.b.i32(0);
}

Value sm90::getFactorHalf(const MatmulContext &kernel, Value k) {
  KernelBuilder &b = kernel.b;
  Value before = countHalvesBefore(kernel, b.shiftRight(kernel.lane, 2));
  return b.bitAnd(b.add(k, before), 1);
}

/// Whether K block `k` is one of the K that there is: the last stage may have
/// more. Null where none has.
static Value isBlockOfK(const MatmulContext &kernel, Value k) {
  int64_t blockK = kernel.layout.rows.getBlockK();
  int64_t blocks = llvm::divideCeil(kernel.spec.k, blockK);
  return blocks % kernel.layout.stageBlocks == 0
             ? Value()
             : kernel.b.less(k, kernel.b.i32(blocks));
}

namespace {
/// What a lane copies of the factors of one tensor. Neighbours have a row's K
/// blocks of a stage, so that these are read together: of one lane `i` has rows
/// `i`, `i` + 32 and so on, of four `i` / 4, `i` / 4 + 8 and so on.
struct FactorRows {
  FactorRows(const MatmulContext &kernel, const Tile &tile, int64_t number);
  void copy(Value stageK, Value stage) const;

  const MatmulContext &kernel;
  KernelBuilder &b;
  const LiftLayout &layout;
  int64_t rows, offset, together;
  Value row, block, first, step, left, before;
};

/// The same of factors of 128x128: lane `i` copies that of 64 rows from 64 i
/// on.
struct FactorBlocks {
  FactorBlocks(const MatmulContext &kernel, const Tile &tile);
  void copy(Value stageK, Value stage) const;

  const MatmulContext &kernel;
  KernelBuilder &b;
  Value row, first, left;
};
} // namespace

FactorRows::FactorRows(const MatmulContext &kernel, const Tile &tile,
                       int64_t number)
    : kernel(kernel), b(kernel.b), layout(*kernel.layout.lift) {
  rows = layout.extent / (kernel.spec.isDual() ? 2 : 1);
  offset = number * rows * 4;
  together = 32 / layout.blocks;
  row = b.div(kernel.lane, layout.blocks);
  block = b.rem(kernel.lane, layout.blocks);
  StringRef name = "scale_b";
  // Dense ones have their strides by extents.
  bool isDense = beginWithinWords(kernel.spec);
  int64_t factors = kernel.spec.k / getLiftedGroup(layout.lifting);
  auto get = [&](StringRef part) -> Value {
    if (isDense && part == ".stride_row")
      return b.i64(factors);
    if (isDense && part == ".stride_batch")
      return b.mul(b.widen(kernel.getParam(tile, "n")), factors);
    return number ? kernel.getParam(getNameOfResult(name, number) + part)
                  : kernel.getParam(tile, name, part);
  };
  Value inTensor = b.add(tile.n, row), stride = get(".stride_row");
  Value index = b.mul(b.widen(inTensor), stride);
  if (kernel.spec.hasBatch(name))
    index = b.add(index, b.mul(b.widen(tile.batch), get(".stride_batch")));
  before = countHalvesBefore(kernel, row);
  first = b.offset(get(".ptr"), b.sub(index, b.mul(b.widen(before), 2)));
  step = arith::TruncIOp::create(b, b.getI32Type(), b.mul(stride, together));
  left = b.sub(kernel.getParam(tile, "n"), inTensor);
}

void FactorRows::copy(Value stageK, Value stage) const {
  Value k = b.add(b.mul(stageK, layout.blocks), block);
  // A word has the factors of one K block or, where they are fewer, of two:
  // the one of this row that K block `k` is in may begin before the row.
  Value word =
      layout.lifting == Lifting::NVFP4 ? k : b.shiftRight(b.add(k, before), 1);
  Value place = b.offset(
      kernel.shared,
      b.add(b.add(b.add(b.mul(stage, layout.exponentStride), b.mul(row, 4)),
                  b.mul(block, layout.getExponentStep())),
            layout.offsetExponents + offset));
  Value source = b.offset(first, b.widen(b.mul(word, 4)));
  // What is computed ahead of time would be kept in registers.
  Value rowsLeft = launder(b, left), toNext = b.widen(launder(b, step));
  if (Value isOfK = isBlockOfK(kernel, k))
    rowsLeft = b.select(isOfK, rowsLeft, b.i32(0));
  for (int64_t i = 0; i < rows; i += together) {
    auto copyOne = [&] {
      Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                           rowsLeft, b.i32(i));
      NVVM::CpAsyncOp::create(b, b.offset(place, b.i32(i * 4)), source, 4,
                              NVVM::LoadCacheModifierKind::CA,
                              b.select(inside, b.i32(4), b.i32(0)));
    };
    if (rows - i >= together)
      copyOne();
    else
      b.ifThen(b.less(row, b.i32(rows - i)), copyOne);
    source = b.offset(source, toNext);
  }
}

FactorBlocks::FactorBlocks(const MatmulContext &kernel, const Tile &tile)
    : kernel(kernel), b(kernel.b) {
  StringRef name = "scale_b";
  row = b.mul(kernel.lane, 64);
  left = b.sub(kernel.getParam(tile, "n"), tile.n);
  // Tiles begin at multiples of 64.
  Value block = b.shiftRight(b.add(tile.n, row), 7);
  Value index =
      b.mul(b.widen(block), kernel.getParam(tile, name, ".stride_row"));
  if (kernel.spec.hasBatch(name))
    index = b.add(index, b.mul(b.widen(tile.batch),
                               kernel.getParam(tile, name, ".stride_batch")));
  first = b.offset(kernel.getParam(tile, name, ".ptr"),
                   b.mul(index, int64_t(sizeof(float))));
}

void FactorBlocks::copy(Value stageK, Value stage) const {
  const LiftLayout &layout = *kernel.layout.lift;
  b.ifThen(b.less(row, b.i32(layout.extent)), [&] {
    Value place =
        b.add(b.add(b.mul(stage, layout.exponentStride), b.mul(kernel.lane, 4)),
              layout.offsetExponents);
    Value firstK = b.mul(stageK, layout.blocks);
    for (int64_t block = 0; block < layout.blocks; ++block) {
      Value k = b.add(firstK, block), isInside = b.less(row, left);
      if (Value isOfK = isBlockOfK(kernel, k))
        isInside = b.bitAnd(isInside, isOfK);
      // Two K blocks have one factor.
      Value source = b.offset(first, b.widen(b.mul(b.shiftRight(k, 1), 4)));
      Value target = b.add(place, block * layout.getExponentStep());
      NVVM::CpAsyncOp::create(b, b.offset(kernel.shared, target), source, 4,
                              NVVM::LoadCacheModifierKind::CA,
                              b.select(isInside, b.i32(4), b.i32(0)));
    }
  });
}

void sm90::buildLiftFactorProducer(const MatmulContext &kernel,
                                   const TileScheduler &scheduler, Ring ring,
                                   Ring packed, int64_t turn) {
  KernelBuilder &b = kernel.b;
  int64_t tensors = kernel.spec.isDual() ? 2 : 1;
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(1)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           SmallVector<FactorRows> copies;
           std::optional<FactorBlocks> blocks;
           if (hasByteFactors(kernel.spec.b.lifting))
             for (int64_t number = 0; number < tensors; ++number)
               copies.emplace_back(kernel, tile, number);
           else
             blocks.emplace(kernel, tile);
           auto [first, last] = kernel.getBlocks(tile);
           return kernel.loopOverBlocks(
               tile, first, last, carried,
               [&](Value k, ValueRange carried) -> SmallVector<Value> {
                 RingPosition position{carried[0], carried[1]};
                 ring.waitEmpty(position);
                 for (const FactorRows &copy : copies)
                   copy.copy(k, position.stage);
                 if (blocks)
                   blocks->copy(k, position.stage);
                 // As factors of other operands, but at the barrier of those
                 // who lift.
                 NVVM::CpAsyncMBarrierArriveOp::create(
                     b, packed.getFullBarrier(position.stage), /*noinc=*/true);
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase};
               },
               ring, turn);
         });
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

ByteLifter::ByteLifter(const MatmulContext &kernel)
    : kernel(kernel), b(kernel.b), layout(*kernel.layout.lift) {}

Value ByteLifter::permute(Value low, Value high, int64_t selector) {
  return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, b.i32(selector),
                                 NVVM::PermuteMode::DEFAULT);
}

Value ByteLifter::multiply(KernelBuilder &b, Value lhs, Value rhs) {
  auto pair = VectorType::get({2}, b.getBF16Type());
  auto cast = [&](Value value) {
    return LLVM::BitcastOp::create(b, pair, value);
  };
  Value product = LLVM::FMulOp::create(b, cast(lhs), cast(rhs));
  return LLVM::BitcastOp::create(b, b.getI32Type(), product);
}

Value ByteLifter::getPlace(Value k) {
  if (layout.lifting == Lifting::NVFP4)
    return kernel.lane;
  // Two lanes share a factor, and two K blocks a word.
  Value row = b.bitAnd(kernel.lane, int64_t(~3));
  Value half = b.bitAnd(b.shiftRight(kernel.lane, 1), 1);
  return b.add(b.add(row, half), b.mul(getFactorHalf(kernel, k), 2));
}

Value ByteLifter::loadFactor(Value byte) {
  Value entry = b.add(b.mul(byte, 4), layout.offsetTable);
  return b.load(b.offset(kernel.shared, entry), b.getI32Type());
}

/// The bytes of a word, of which none is NaN if the highest bits are 0.
static Value findNaN(KernelBuilder &b, Value codes) {
  Value sum = b.add(b.bitAnd(codes, 0x7f7f7f7f), 0x01010101);
  return b.bitAnd(sum, int64_t(0x80808080));
}

SmallVector<Value> ByteLifter::liftE4M3(Value codes, Value factor,
                                        bool withNaN) {
  SmallVector<Value> words;
  for (int64_t half = 0; half < 2; ++half) {
    // Each byte as the upper one of a half word.
    Value wide = permute(codes, b.i32(0), half == 0 ? 0x1404 : 0x3424);
    Value magnitudes = b.bitAnd(b.shiftRight(wide, 4), twice(0x07f0));
    Value bits = arith::OrIOp::create(b, magnitudes,
                                      b.bitAnd(wide, int64_t(twice(0x8000))));
    Value word = multiply(b, multiply(b, bits, b.i32(twice(kTo120))), factor);
    if (withNaN) {
      // The highest bit of a byte, in all bits of a half word.
      Value mask =
          permute(findNaN(b, codes), b.i32(0), half == 0 ? 0x9988 : 0xbbaa);
      word = arith::OrIOp::create(b, word, b.bitAnd(mask, twice(kNaN)));
    }
    words.push_back(word);
  }
  return words;
}

SmallVector<Value> ByteLifter::liftE2M1(Value codes,
                                        std::array<Value, 2> factors) {
  // Upper and lower bytes of 0, 0.5, 1, 1.5, and of 2, 3, 4, 6.
  Value upper[] = {b.i32(0x3f3f3f00), b.i32(0x40404040)};
  Value lower[] = {b.i32(int64_t(0xc0800000)), b.i32(int64_t(0xc0804000))};
  Value magnitudes = b.bitAnd(codes, 0x77777777);
  // Signs of the lower halves of bytes are four bits below.
  Value ofLower = arith::ShLIOp::create(b, codes, b.i32(4));
  SmallVector<Value> words;
  for (int64_t half = 0; half < 2; ++half) {
    Value selector = b.shiftRight(magnitudes, 16 * half);
    auto select = [&](ArrayRef<Value> bytes) -> Value {
      return NVVM::PermuteOp::create(b, b.getI32Type(), bytes[0], bytes[1],
                                     selector, NVVM::PermuteMode::DEFAULT);
    };
    Value signs = permute(ofLower, codes, half == 0 ? 0x5140 : 0x7362);
    Value high = arith::OrIOp::create(b, select(upper),
                                      b.bitAnd(signs, int64_t(0x80808080)));
    Value low = select(lower);
    for (int64_t selector : {0x5140, 0x7362})
      words.push_back(multiply(b, permute(low, high, selector), factors[half]));
  }
  return words;
}

void ByteLifter::lift(Value codes, Value factor, Value place,
                      ArrayRef<Value> places) {
  Type i32 = b.getI32Type();
  Value multiplier = loadFactor(factor);
  SmallVector<Value> words;
  for (int64_t i = 0, e = cast<VectorType>(codes.getType()).getNumElements();
       i < e; ++i)
    words.push_back(LLVM::ExtractElementOp::create(b, codes, b.i32(i)));
  bool isE4M3 = layout.lifting == Lifting::MXFP8;
  auto write = [&](bool withNaN) {
    SmallVector<Value> lifted;
    for (Value word : words)
      llvm::append_range(lifted,
                         isE4M3 ? liftE4M3(word, multiplier, withNaN)
                                : liftE2M1(word, {multiplier, multiplier}));
    auto vector = VectorType::get({4}, i32);
    for (int64_t half = 0; half < 2; ++half) {
      Value chunk = LLVM::UndefOp::create(b, vector);
      for (int64_t i = 0; i < 4; ++i)
        chunk = LLVM::InsertElementOp::create(b, chunk, lifted[4 * half + i],
                                              b.i32(i));
      b.store(chunk, b.offset(kernel.shared, b.add(place, places[half])));
    }
  };
  write(/*withNaN=*/false);
  if (!isE4M3)
    return;
  // Hardly ever: what has the bits of 480 is none.
  Value found = findNaN(b, words.front());
  for (Value word : ArrayRef(words).drop_front())
    found = arith::OrIOp::create(b, found, findNaN(b, word));
  Value isAny =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, found, b.i32(0));
  b.ifThen(isAny, [&] { write(/*withNaN=*/true); });
}
