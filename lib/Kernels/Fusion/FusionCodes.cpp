//===- FusionCodes.cpp - Numbers as codes, in registers -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionCodes.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fp8;

/// Two f32 as 8-bit codes in an i16, the first one below.
static Value encodePair(KernelBuilder &b, Value first, Value second,
                        Type type) {
  // The first operand goes to the upper half.
  return NVVM::ConvertF32x2ToF8x2Op::create(
      b, b.getI16Type(), second, first, NVVM::FPRoundingMode::RN,
      NVVM::SaturationMode::SATFINITE, /*relu=*/false, type);
}

/// Two 8-bit codes in an i16 as a vector of f16, which has all of their values.
static Value decodePair(KernelBuilder &b, Value both, Type type) {
  auto bytes = VectorType::get({2}, b.getI8Type());
  auto halves = VectorType::get({2}, b.getF16Type());
  return NVVM::ConvertF8x2ToF16x2Op::create(
      b, halves, LLVM::BitcastOp::create(b, bytes, both), /*relu=*/false, type);
}

static Value getBits(KernelBuilder &b, Value number) {
  return arith::BitcastOp::create(b, b.getI32Type(), number);
}

/// The magnitude of a number as far as E2M1 goes; that of a NaN is the largest.
static Value clampToE2M1(KernelBuilder &b, Value number) {
  return arith::MinNumFOp::create(b, math::AbsFOp::create(b, number),
                                  b.f32(6.0f));
}

/// A code without its sign is `large` from 1 on, where the place of the bits of
/// an f32 is that of the codes but for a bias, and `small` below.
static Value joinE2M1(KernelBuilder &b, Value number, Value magnitude,
                      Value large, Value small) {
  constexpr int64_t bias = (127 - 1) * 2;
  Value isSmall = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, magnitude,
                                        b.f32(1.0f));
  Value code = b.select(isSmall, small, b.sub(large, b.i32(bias)));
  Value sign = b.bitAnd(b.shiftRight(getBits(b, number), 28), 8);
  Value isNumber =
      arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, number, number);
  return b.select(isNumber, arith::OrIOp::create(b, code, sign), b.i32(7));
}

/// The code (i32) of E2M1 that is nearest to an f32, for which sm_90 has no
/// instruction.
static Value encodeE2M1(KernelBuilder &b, Value number) {
  Value magnitude = clampToE2M1(b, number);
  // From 1 on, a bit of the mantissa is left: half of the last place that is
  // kept, less one unit if it is even, carries into it.
  Value bits = getBits(b, magnitude);
  Value odd = b.bitAnd(b.shiftRight(bits, 22), 1);
  Value rounded = b.add(b.add(bits, 0x1fffff), odd);
  // Below codes are multiples of a half, as are the last places of 2^22.
  constexpr float base = 1 << 22;
  Value shifted = arith::AddFOp::create(b, magnitude, b.f32(base));
  Value small = b.sub(getBits(b, shifted), getBits(b, b.f32(base)));
  return joinE2M1(b, number, magnitude, b.shiftRight(rounded, 22), small);
}

/// The code (i32) of E2M1 that a random word has for an f32: what is cut off,
/// as a fraction of 2^24, is above the word's upper 24 bits if it carries with
/// what they lack of all ones. The cvt.rs of sm_100a has 32 bits for the four
/// numbers that it rounds, where each has 24 of its own here, so that it cannot
/// give these codes.
static Value encodeE2M1ByChance(KernelBuilder &b, Value number, Value random) {
  Value magnitude = clampToE2M1(b, number);
  Value rest = b.bitXor(random, b.i32(-1));
  // 22 bits are cut off from 1 on, of which those below have no say.
  Value large =
      b.shiftRight(b.add(getBits(b, magnitude), b.shiftRight(rest, 10)), 22);
  // Below in units of 2^-25, rounded up: an integer is below a number exactly
  // if it is below the next integer.
  Value units = LLVM::FCeilOp::create(b, b.getF32Type(),
                                      b.mulF(magnitude, b.f32(0x1p25f)));
  Value small =
      b.shiftRight(b.add(LLVM::FPToUIOp::create(b, b.getI32Type(), units),
                         b.shiftRight(rest, 8)),
                   24);
  return joinE2M1(b, number, magnitude, large, small);
}

static Value joinHalves(KernelBuilder &b, Value low, Value high) {
  return arith::OrIOp::create(b, low,
                              arith::ShLIOp::create(b, high, b.i32(16)));
}

Value fp8::joinCodes(KernelBuilder &b, ArrayRef<Value> codes) {
  auto joinTwo = [&](Value first, Value second) -> Value {
    return arith::OrIOp::create(b, first,
                                arith::ShLIOp::create(b, second, b.i32(8)));
  };
  return joinHalves(b, joinTwo(codes[0], codes[1]),
                    joinTwo(codes[2], codes[3]));
}

SmallVector<Value> fp8::splitCodes(KernelBuilder &b, Value word) {
  SmallVector<Value> codes;
  for (int64_t bits : {0, 8, 16, 24})
    codes.push_back(b.bitAnd(b.shiftRight(word, bits), 0xff));
  return codes;
}

bool fp8::hasCodes(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type, Float4E2M1FNType>(type);
}

SmallVector<Value> fp8::encode(KernelBuilder &b, ArrayRef<Value> numbers,
                               Type type) {
  assert(hasCodes(type) && "expected a type that a fusion may read and write");
  SmallVector<Value> words;
  for (; !numbers.empty(); numbers = numbers.drop_front(4)) {
    if (isa<Float4E2M1FNType>(type)) {
      words.push_back(joinCodes(
          b, llvm::map_to_vector(numbers.take_front(4), [&](Value number) {
            return encodeE2M1(b, number);
          })));
      continue;
    }
    // As halves of a register: conversions write either one.
    Value both = LLVM::UndefOp::create(b, VectorType::get({2}, b.getI16Type()));
    for (int64_t half : {0, 1})
      both = LLVM::InsertElementOp::create(
          b, both,
          encodePair(b, numbers[2 * half], numbers[2 * half + 1], type),
          b.i32(half));
    words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), both));
  }
  return words;
}

SmallVector<Value> fp8::encodeByChance(KernelBuilder &b,
                                       ArrayRef<Value> numbers,
                                       ArrayRef<Value> random) {
  return llvm::map_to_vector(llvm::zip_equal(numbers, random), [&](auto pair) {
    return encodeE2M1ByChance(b, std::get<0>(pair), std::get<1>(pair));
  });
}

SmallVector<Value> fp8::decode(KernelBuilder &b, ArrayRef<Value> words,
                               Type type) {
  assert(hasCodes(type) && "expected a type that a fusion may read and write");
  bool isE2M1 = isa<Float4E2M1FNType>(type);
  SmallVector<Value> numbers;
  for (Value word : words) {
    // E2M1's exponent and mantissa are those of an E4M3 of 2^-6 of the value.
    if (isE2M1) {
      Value magnitude =
          arith::ShLIOp::create(b, b.bitAnd(word, 0x07070707), b.i32(2));
      Value sign =
          arith::ShLIOp::create(b, b.bitAnd(word, 0x08080808), b.i32(4));
      word = arith::OrIOp::create(b, magnitude, sign);
    }
    for (int64_t bits : {0, 16}) {
      Value both =
          arith::TruncIOp::create(b, b.getI16Type(), b.shiftRight(word, bits));
      Value pair = decodePair(
          b, both, isE2M1 ? Float8E4M3FNType::get(b.getContext()) : type);
      for (int64_t i = 0; i < 2; ++i) {
        Value half = LLVM::ExtractElementOp::create(b, pair, b.i32(i));
        Value number = arith::ExtFOp::create(b, b.getF32Type(), half);
        numbers.push_back(isE2M1 ? b.mulF(number, b.f32(64.0f)) : number);
      }
    }
  }
  return numbers;
}

static Value permuteBytes(KernelBuilder &b, Value low, Value high,
                          int64_t selector) {
  return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, b.i32(selector),
                                 NVVM::PermuteMode::DEFAULT);
}

Value fp8::gatherCodes(KernelBuilder &b, Value first, Value second) {
  // Bytes 0 and 2 of each word have a code and that of the next byte.
  auto join = [&](Value word) -> Value {
    return arith::OrIOp::create(b, word, b.shiftRight(word, 4));
  };
  return permuteBytes(b, join(first), join(second), 0x6420);
}

SmallVector<Value> fp8::spreadCodes(KernelBuilder &b, Value word) {
  Value zero = b.i32(0);
  SmallVector<Value> words;
  for (int64_t selector : {0x1100, 0x3322}) {
    Value twice = permuteBytes(b, word, zero, selector);
    words.push_back(
        arith::OrIOp::create(b, b.bitAnd(twice, 0x000f000f),
                             b.bitAnd(b.shiftRight(twice, 4), 0x0f000f00)));
  }
  return words;
}

Value fp8::encodeFactor(KernelBuilder &b, Value factor) {
  Value pair =
      encodePair(b, factor, b.f32(0.0f), Float8E4M3FNType::get(b.getContext()));
  return arith::ExtUIOp::create(b, b.getI32Type(), pair);
}

Value fp8::decodeFactor(KernelBuilder &b, Value code, Type type) {
  if (!isa<Float8E8M0FNUType>(type)) {
    Value pair =
        decodePair(b, arith::TruncIOp::create(b, b.getI16Type(), code), type);
    Value half = LLVM::ExtractElementOp::create(b, pair, b.i32(0));
    return arith::ExtFOp::create(b, b.getF32Type(), half);
  }
  // The exponent of an f32; 0 is a subnormal one, 255 is NaN.
  Value bits = arith::ShLIOp::create(b, code, b.i32(23));
  bits = b.select(b.equal(code, 0), b.i32(0x00400000), bits);
  bits = b.select(b.equal(code, 255), b.i32(0x7fc00000), bits);
  return arith::BitcastOp::create(b, b.getF32Type(), bits);
}
