//===- LiftArranged.cpp - Weights that lie as they are read ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a thread multiplies of a row and 64 elements, to E4M3 of 32, is
// together, so that one load brings it. Bits of codes lie so that one rotation
// and one mask make a pair of bf16 of them: docs/PackedWeights.md has the
// order.
//
//===----------------------------------------------------------------------===//

#include "../Blocks/Rounding.h"
#include "Lift.h"
#include "LiftFragments.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// The bits of a bf16 pair that an E2M1 has, 2^126 times too small.
static constexpr uint32_t kE2M1Bits = 0x81c081c0;

namespace {
/// Which word has the bits of a pair, or those of both, and how much further up
/// they are, around the word's end.
struct ArrangedPair {
  enum Source : uint8_t { First, Second, Both } source;
  int bits;
};
} // namespace

/// The pairs of a row and 64 of K that a thread has, in their order. Those of a
/// word have no bit in common, and what they leave is of both. Bits that are
/// further down do not go around the end: units that multiply may move them.
static constexpr ArrangedPair kPairs[] = {
    {ArrangedPair::First, 0},  {ArrangedPair::First, 4},
    {ArrangedPair::First, -6}, {ArrangedPair::Second, 2},
    {ArrangedPair::Second, 6}, {ArrangedPair::Second, -4},
    {ArrangedPair::Both, 8},   {ArrangedPair::Both, -2},
};

/// The bits that pairs of `source` take.
static constexpr uint32_t getBits(ArrangedPair::Source source) {
  uint32_t taken = 0;
  for (const ArrangedPair &pair : kPairs)
    if (pair.source == source)
      taken |= llvm::rotl<uint32_t>(kE2M1Bits, (pair.bits + 32) % 32);
  return taken;
}

/// The bf16 pairs of 64 elements of a row, 2^126 times too small.
static SmallVector<Value> widenCodes(KernelBuilder &b, Value first,
                                     Value second) {
  constexpr uint32_t ofFirst = ~getBits(ArrangedPair::First);
  static_assert((ofFirst | ~getBits(ArrangedPair::Second)) ==
                    getBits(ArrangedPair::Both),
                "what either word leaves is of the pairs of both");
  // One instruction of three inputs.
  Value both =
      b.bitXor(b.bitAnd(b.bitXor(first, second), int64_t(ofFirst)), second);
  Value sources[] = {first, second, both};
  SmallVector<Value> words;
  for (const ArrangedPair &pair : kPairs) {
    Value word = sources[pair.source];
    if (pair.bits)
      word =
          LLVM::FshrOp::create(b, b.getI32Type(), word, word, b.i32(pair.bits));
    words.push_back(b.bitAnd(word, int64_t(kE2M1Bits)));
  }
  return words;
}

/// One of a pair of bf16, twice.
static Value repeat(KernelBuilder &b, Value pair, int32_t half) {
  auto type = VectorType::get({2}, b.getBF16Type());
  Value halves = LLVM::BitcastOp::create(b, type, pair);
  Value twice = LLVM::ShuffleVectorOp::create(b, halves, halves, {half, half});
  return LLVM::BitcastOp::create(b, b.getI32Type(), twice);
}

/// Factors make products of NVFP4 so many times too small, which sums make up
/// for: 2^126 times a factor, of up to 448, would be no bf16.
static constexpr float kSmaller = 0x1p8f;

/// The bf16, twice each, of a word of four E4M3 without signs, of which none is
/// NaN: their bits where a bf16 has them are 2^120 times too small. What they
/// multiply is 2^126 times too small, and becomes as much too small as
/// kSmaller says.
static std::array<Value, 4> widenFactors(KernelBuilder &b, Value word) {
  constexpr int64_t kBits = 0x07f007f0, kTo127 = 0x7f007f00,
                    kTo111 = 0x77007700;
  Value moved[] = {arith::ShLIOp::create(b, word, b.i32(4)),
                   b.shiftRight(word, 4)};
  std::array<Value, 4> factors;
  for (int64_t i = 0; i < 2; ++i) {
    Value pair =
        ByteLifter::multiply(b, b.bitAnd(moved[i], kBits), b.i32(kTo127));
    pair = ByteLifter::multiply(b, pair, b.i32(kTo111));
    for (int32_t half = 0; half < 2; ++half)
      factors[2 * half + i] = repeat(b, pair, half);
  }
  return factors;
}

SmallVector<Value> FragmentLifter::liftArranged(Value place,
                                                const Rows &words) {
  constexpr int64_t kTo126 = 0x7e807e80;
  std::array<SmallVector<Value>, 2> lifted;
  std::array<std::array<Value, kSteps>, 2> factors;
  for (int64_t i = 0; i < 2; ++i) {
    Value at = b.add(place, i * 8 * layout.packed.getRowBytes());
    Value pair = b.load(b.offset(kernel.shared, at),
                        VectorType::get({2}, b.getI32Type()));
    lifted[i] = widenCodes(b, LLVM::ExtractElementOp::create(b, pair, b.i32(0)),
                           LLVM::ExtractElementOp::create(b, pair, b.i32(1)));
    if (layout.lifting == Lifting::NVFP4)
      factors[i] = widenFactors(b, words[i]);
  }
  for (int64_t step = 0; step < kSteps && layout.lifting == Lifting::MXFP4;
       step += 2) {
    Rows found = getFactors(words, step / 2);
    for (int64_t i = 0; i < 2; ++i)
      factors[i][step] = factors[i][step + 1] = found[i];
  }
  SmallVector<Value> all;
  for (int64_t number = 0; number < 2 * kSteps; ++number)
    for (int64_t i = 0; i < 2; ++i) {
      Value exact = lifted[i][number];
      if (layout.lifting == Lifting::MXFP4)
        exact = ByteLifter::multiply(b, exact, b.i32(kTo126));
      all.push_back(ByteLifter::multiply(b, exact, factors[i][number / 2]));
    }
  return all;
}

/// The bf16 of factor `index`, an E8M0 of up to 2^7, of a word, twice and 2^120
/// times as large.
static Value widenE8M0(KernelBuilder &b, Value word, int64_t index) {
  constexpr int64_t kTwice = 0x00800080, kTo120 = 0x3c003c00;
  Value byte = b.bitAnd(index ? b.shiftRight(word, 8 * index) : word, 0xff);
  return b.add(b.mul(byte, kTwice), kTo120);
}

/// The two pairs of bf16 of a word of four E4M3, 2^120 times too small: bits of
/// the second lie where the first leaves some.
static std::array<Value, 2> widenE4M3(KernelBuilder &b, Value word) {
  constexpr int64_t kFirst = 0x87f087f0, kLow = 0x80f080f0, kHigh = 0x07000700;
  Value low = b.bitAnd(arith::ShLIOp::create(b, word, b.i32(4)), kLow);
  Value high = b.bitAnd(b.shiftRight(word, 4), kHigh);
  return {b.bitAnd(word, kFirst), arith::OrIOp::create(b, low, high)};
}

/// Whether 2^120 times the f32 that are `bits` is a bf16 that makes exact
/// products of E4M3 that are 2^120 times too small: a power of two.
static Value isSmallPower(KernelBuilder &b, Value bits) {
  constexpr int64_t kLeast = int64_t(27) << 23, kMost = int64_t(134) << 23;
  Value isPower = b.equal(b.bitAnd(bits, 0x007fffff), 0);
  Value fromLeast = b.sub(bits, b.i32(kLeast));
  return b.bitAnd(isPower, b.less(fromLeast, b.i32(kMost - kLeast + 1)));
}

SmallVector<Value> FragmentLifter::liftArrangedE4M3(Value place,
                                                    const Rows &words) {
  // Pairs of either row, 2^120 times too small.
  std::array<SmallVector<Value>, 2> pairs;
  for (int64_t i = 0; i < 2; ++i) {
    Value at = b.add(place, i * 8 * layout.packed.getRowBytes());
    Value codes = b.load(b.offset(kernel.shared, at),
                         VectorType::get({kSteps}, b.getI32Type()));
    for (int64_t step = 0; step < kSteps; ++step)
      llvm::append_range(pairs[i], widenE4M3(b, LLVM::ExtractElementOp::create(
                                                    b, codes, b.i32(step))));
  }
  // In the order of instructions, with a factor for each row and 32 of K.
  auto forAll =
      [&](llvm::function_ref<Value(Value pair, int64_t row, int64_t step)>
              multiply) {
        SmallVector<Value> all;
        for (size_t number = 0; number < pairs[0].size(); ++number)
          for (int64_t i = 0; i < 2; ++i)
            all.push_back(multiply(pairs[i][number], i, number / 2));
        return all;
      };
  auto round = [&](Value pair, Value factor) {
    return roundProducts(unpackFragment(b, b.getBF16Type(), pair), factor);
  };
  auto toF32 = [&](Value bits) -> Value {
    return LLVM::BitcastOp::create(b, b.getF32Type(), bits);
  };
  if (layout.lifting != Lifting::E4M3Blocks)
    return forAll([&](Value pair, int64_t row, int64_t step) {
      Value factor = widenE8M0(b, words[row], step / 2);
      return multipliesWide()
                 ? round(pair, toF32(b.bitAnd(factor, int64_t(0xffff0000))))
                 : ByteLifter::multiply(b, pair, factor);
    });
  auto multiplyWide = [&] {
    Value factor = b.mulF(toF32(words[0]), b.f32(0x1p120f));
    return forAll(
        [&](Value pair, int64_t, int64_t) { return round(pair, factor); });
  };
  if (kernel.spec.b.elementType.isF16())
    return multiplyWide();
  // Those of rows are 1, and those of blocks often are powers of two.
  Value bits = b.uniform(words[0]);
  return b.choose(
      isSmallPower(b, bits),
      [&] {
        Value half = b.add(b.shiftRight(bits, 16), b.i32(120 << 7));
        Value factor = b.mul(half, 0x10001);
        return forAll([&](Value pair, int64_t, int64_t) {
          return ByteLifter::multiply(b, pair, factor);
        });
      },
      multiplyWide);
}

float FragmentLifter::getScale() const {
  bool isSmaller = kernel.spec.b.isArranged && layout.lifting == Lifting::NVFP4;
  return isSmaller ? kSmaller : 1;
}

SmallVector<Value> FragmentLifter::liftArrangedToE4M3(Value place,
                                                      const Rows &exponents) {
  SmallVector<Value> lifted;
  for (int64_t step = 0; step < kSteps; ++step) {
    Value at = step ? b.bitXor(place, b.i32(step * 16)) : place;
    std::array<std::array<Value, 2>, 2> words;
    for (int64_t i = 0; i < 2; ++i) {
      Value row = b.add(at, i * 8 * layout.packed.getRowBytes());
      Value word = b.load(b.offset(kernel.shared, row), b.getI32Type());
      auto [low, high] = loadEntry(exponents[i], step);
      std::array<Value, 2> pair = liftArrangedWord(b, word, low, high);
      for (int64_t half = 0; half < 2; ++half)
        words[half][i] = pair[half];
    }
    for (const std::array<Value, 2> &half : words)
      lifted.append(half.begin(), half.end());
  }
  return lifted;
}
