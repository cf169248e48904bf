//===- LiftFragments.cpp - Codes to what wgmma takes as A -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What lifters write to shared memory tensor cores read there again: for each
// E4M3 six bytes pass its port. In registers there are two. The order of K is
// the program's, for sums depend on it: of 16 codes a thread has 2 c, 2 c + 1
// and those 8 behind. It loads two at a time, 16 bits of E4M3 and 8 of E2M1.
//
// What becomes f16, or has factors that are no powers of two, is multiplied in
// f32 and rounded once, as fp8.dequantize has it. All other products are exact
// in bf16.
//
// Rows are swizzled by as many bytes as they have, so that eight of them lie in
// different banks; where a stage has several K blocks, words of eight bytes of
// two rows meet in one.
//
//===----------------------------------------------------------------------===//

#include "LiftFragments.h"
#include "../Blocks/Rounding.h"
#include "Lift.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Bytes from one row to that 8 further on of the words of factors.
static constexpr int64_t kFactorBytes = 8 * 4;
/// 2^126, as bf16.
static constexpr int64_t kTo126 = 0x7e80;

FragmentLifter::FragmentLifter(const MatmulContext &kernel, Value slice)
    : kernel(kernel), b(kernel.b), layout(*kernel.layout.lift), bytes(kernel) {
  Value warp = b.shiftRight(b.bitAnd(kernel.thread, 127), 5);
  Value row = b.add(b.add(b.mul(slice, 64), b.mul(warp, 16)),
                    b.shiftRight(kernel.lane, 2));
  Value quad = b.bitAnd(kernel.lane, 3);
  int64_t rowBytes = layout.getBlockRowBytes();
  bool isArranged = kernel.spec.b.isArranged;
  Value first = b.mul(row, layout.packed.getRowBytes());
  // What a thread reads of a row and 64 elements is together there.
  bool areTogether = isArranged && kernel.hasLiftFactorWarp();
  if (areTogether)
    first = b.add(first, b.mul(quad, rowBytes / 4));
  codes = b.add(layout.packed.getSwizzled(b, first), layout.offsetCodes);
  // Those of 128 rows are one for each 64.
  Value place = hasByteFactors(layout.lifting) || !kernel.hasLiftFactorWarp()
                    ? row
                    : slice;
  factors = b.add(b.mul(place, 4), layout.offsetExponents);
  if (!areTogether)
    codes = b.add(codes, b.mul(quad, isArranged ? 4 : rowBytes / 32));
}

FragmentLifter::Rows FragmentLifter::loadFactors(Value place, Value k) {
  Rows words;
  if (layout.lifting == Lifting::E4M3Blocks) {
    words[0] = words[1] =
        b.load(b.offset(kernel.shared, place), b.getI32Type());
    return words;
  }
  for (int64_t i = 0; i < 2; ++i) {
    Value at = b.offset(kernel.shared, b.add(place, i * kFactorBytes));
    words[i] = b.load(at, b.getI32Type());
    // Where they are few, a word has those of two K blocks.
    if (kernel.hasLiftFactorWarp() && layout.lifting != Lifting::NVFP4)
      words[i] = arith::ShRUIOp::create(b, words[i],
                                        b.mul(getFactorHalf(kernel, k), 16));
  }
  return words;
}

FragmentLifter::Rows FragmentLifter::getFactors(const Rows &words,
                                                int64_t index) {
  Rows found;
  for (int64_t i = 0; i < 2; ++i) {
    Value byte =
        b.bitAnd(index ? b.shiftRight(words[i], 8 * index) : words[i], 0xff);
    found[i] = bytes.loadFactor(byte);
  }
  return found;
}

bool FragmentLifter::multipliesWide() const {
  return hasWideCodes(layout.lifting) &&
         (layout.lifting == Lifting::E4M3Blocks ||
          kernel.spec.b.elementType.isF16());
}

FragmentLifter::Rows FragmentLifter::getWideFactors(const Rows &words,
                                                    int64_t index) {
  auto toF32 = [&](Value bits) -> Value {
    return LLVM::BitcastOp::create(b, b.getF32Type(), bits);
  };
  if (layout.lifting == Lifting::E4M3Blocks)
    return {toF32(words[0]), toF32(words[1])};
  Rows found = getFactors(words, index);
  for (Value &factor : found)
    factor = toF32(b.bitAnd(factor, int64_t(0xffff0000)));
  return found;
}

Value FragmentLifter::roundProducts(ArrayRef<Value> pair, Value factor) {
  Value first = b.mulF(pair[0], factor), second = b.mulF(pair[1], factor);
  return LLVM::BitcastOp::create(
      b, b.getI32Type(),
      roundPair(b, kernel.spec.b.elementType, first, second));
}

void FragmentLifter::narrow(SmallVectorImpl<Value> &words) {
  Type type = kernel.spec.b.elementType;
  if (type.isF16() && !multipliesWide())
    for (Value &word : words)
      word = packFragment(b, type, unpackFragment(b, b.getBF16Type(), word))
                 .front();
}

/// Two E4M3 as f32: in f16 they are exact, too.
static std::array<Value, 2> widenPair(KernelBuilder &b, Value codes) {
  auto halves = VectorType::get({2}, b.getF16Type());
  Value pair = NVVM::ConvertF8x2ToF16x2Op::create(
      b, halves,
      LLVM::BitcastOp::create(b, VectorType::get({2}, b.getI8Type()), codes),
      /*relu=*/false, Float8E4M3FNType::get(b.getContext()));
  std::array<Value, 2> wide;
  for (int64_t i = 0; i < 2; ++i)
    wide[i] = arith::ExtFOp::create(
        b, b.getF32Type(),
        LLVM::ExtractElementOp::create(b, pair, b.i32(i)).getResult());
  return wide;
}

/// The bf16 of two E4M3.
static Value liftPair(KernelBuilder &b, Value codes, Value factor) {
  std::array<Value, 2> wide = widenPair(b, codes);
  Value bits = LLVM::BitcastOp::create(
      b, b.getI32Type(), roundPair(b, b.getBF16Type(), wide[0], wide[1]));
  return ByteLifter::multiply(b, bits, factor);
}

SmallVector<Value> FragmentLifter::liftE4M3(Value place, const Rows &words) {
  SmallVector<Value> lifted;
  Rows multipliers;
  bool isWide = multipliesWide();
  int64_t rowBytes = layout.packed.getRowBytes();
  for (int64_t step = 0; step < kSteps; ++step) {
    if (step % 2 == 0)
      multipliers = isWide ? getWideFactors(words, step / 2)
                           : getFactors(words, step / 2);
    Value at = step ? b.bitXor(place, b.i32(step * 16)) : place;
    // Rows of a lower 8 of K first, then of the upper.
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < 2; ++i) {
        Value own = b.load(
            b.offset(kernel.shared, b.add(at, half * 8 + i * 8 * rowBytes)),
            b.getIntegerType(16));
        lifted.push_back(isWide
                             ? roundProducts(widenPair(b, own), multipliers[i])
                             : liftPair(b, own, multipliers[i]));
      }
  }
  return lifted;
}

/// The bf16 of the two E2M1 in a byte, 2^126 times too small: either half has
/// the sign where a bf16 has it, the exponent's bits as its lowest, and the
/// mantissa's behind them. Products move bits by units that are idle.
static Value widenE2M1(KernelBuilder &b, Value byte) {
  auto moveTo = [&](int64_t lower, int64_t upper) {
    return b.mul(byte, int64_t(1) << lower | int64_t(1) << upper);
  };
  Value magnitudes = b.bitAnd(moveTo(6, 18), 0x01c001c0);
  Value signs = b.bitAnd(moveTo(12, 24), int64_t(0x80008000));
  return arith::OrIOp::create(b, magnitudes, signs);
}

SmallVector<Value> FragmentLifter::liftE2M1(Value place, const Rows &words) {
  SmallVector<Value> lifted;
  int64_t perFactor = getLiftedGroup(layout.lifting) / 16;
  int64_t rowBytes = layout.packed.getRowBytes();
  Rows multipliers;
  for (int64_t step = 0; step < kSteps; ++step) {
    if (step % perFactor == 0)
      multipliers = getFactors(words, step / perFactor);
    Value at = step / 2 ? b.bitXor(place, b.i32(16)) : place;
    // Rows of a lower 8 of K first, then of the upper.
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < 2; ++i) {
        int64_t offset = step % 2 * 8 + half * 4 + i * 8 * rowBytes;
        Value byte = arith::ExtUIOp::create(
            b, b.getI32Type(),
            b.load(b.offset(kernel.shared, b.add(at, offset)),
                   b.getIntegerType(8)));
        Value exact = ByteLifter::multiply(b, widenE2M1(b, byte),
                                           b.i32(kTo126 << 16 | kTo126));
        lifted.push_back(ByteLifter::multiply(b, exact, multipliers[i]));
      }
  }
  return lifted;
}

std::pair<Value, Value> FragmentLifter::loadEntry(Value exponents,
                                                  int64_t step) {
  // An entry has 8 bytes.
  Value entry = step ? b.shiftRight(exponents, 8 * step - 3)
                     : arith::ShLIOp::create(b, exponents, b.i32(3));
  entry = b.add(b.bitAnd(entry, 15 * 8), layout.offsetTable);
  Value table = b.load(b.offset(kernel.shared, entry),
                       VectorType::get({2}, b.getI32Type()));
  return {LLVM::ExtractElementOp::create(b, table, b.i32(0)),
          LLVM::ExtractElementOp::create(b, table, b.i32(1))};
}

SmallVector<Value> FragmentLifter::liftToE4M3(Value place,
                                              const Rows &exponents) {
  SmallVector<Value> lifted;
  for (int64_t step = 0; step < kSteps; ++step) {
    Value at = step ? b.bitXor(place, b.i32(step * 16)) : place;
    std::array<Value, 2> words[2];
    for (int64_t i = 0; i < 2; ++i) {
      // The bytes of 32 of K: two of the lower 16, and two of the upper.
      auto load = [&](int64_t offset) -> Value {
        Value address = b.add(at, offset + i * 8 * layout.packed.getRowBytes());
        return arith::ExtUIOp::create(
            b, b.getI32Type(),
            b.load(b.offset(kernel.shared, address), b.getIntegerType(16)));
      };
      Value codes =
          NVVM::PermuteOp::create(b, b.getI32Type(), load(0), load(8),
                                  b.i32(0x5410), NVVM::PermuteMode::DEFAULT);
      auto [low, high] = loadEntry(exponents[i], step);
      words[i] = liftWord(b, codes, low, high);
    }
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < 2; ++i)
        lifted.push_back(words[i][half]);
  }
  return lifted;
}

SmallVector<Value> FragmentLifter::lift(Value stage, Value k, int64_t block,
                                        int64_t subtile) {
  int64_t rows = subtile * kernel.config.getSharers() * 64;
  Value place = b.add(b.add(b.mul(stage, layout.codeStride), codes),
                      rows * layout.packed.getRowBytes());
  if (block > 0)
    place = b.bitXor(place, b.i32(block * layout.getBlockRowBytes()));
  bool isBlock = layout.lifting == Lifting::E4M3Blocks;
  Value ofFactors = b.add(b.add(b.mul(stage, layout.exponentStride), factors),
                          block * layout.getExponentStep() +
                              (isBlock ? rows / 64 * 4 : rows * 4));
  Rows words = loadFactors(ofFactors, k);
  bool isArranged = kernel.spec.b.isArranged;
  if (!kernel.hasLiftFactorWarp())
    return isArranged ? liftArrangedToE4M3(place, words)
                      : liftToE4M3(place, words);
  SmallVector<Value> lifted;
  if (hasWideCodes(layout.lifting))
    lifted =
        isArranged ? liftArrangedE4M3(place, words) : liftE4M3(place, words);
  else
    lifted = isArranged ? liftArranged(place, words) : liftE2M1(place, words);
  narrow(lifted);
  return lifted;
}
