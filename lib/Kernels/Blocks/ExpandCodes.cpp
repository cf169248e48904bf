//===- ExpandCodes.cpp - Codes of 8 bits by integers ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandCodes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// From codes
//===----------------------------------------------------------------------===//

static Value shiftLeft(KernelBuilder &b, Value value, int64_t bits) {
  return arith::ShLIOp::create(b, value, b.i32(bits));
}

std::array<Value, 2> fp8::expandCodes(KernelBuilder &b, Value word, Type type) {
  bool isE5M2 = isa<Float8E5M2Type>(type);
  Value magnitudes = b.bitAnd(word, 0x7f7f7f7f);
  // The largest magnitude of E4M3 is a NaN: with the bit above it is one of
  // f16.
  if (!isE5M2)
    magnitudes = arith::OrIOp::create(
        b, magnitudes,
        b.bitAnd(b.add(magnitudes, 0x01010101), int64_t(0x80808080)));
  std::array<Value, 2> words;
  for (auto [i, selector] : llvm::enumerate(std::array{0x1404, 0x3424})) {
    // Each code is the upper byte of a half.
    auto getUpper = [&](Value codes) {
      return NVVM::PermuteOp::create(b, b.getI32Type(), codes, b.i32(0),
                                     b.i32(selector),
                                     NVVM::PermuteMode::DEFAULT)
          .getResult();
    };
    if (isE5M2) {
      words[i] = getUpper(word);
      continue;
    }
    // The exponent has one bit more, and another bias.
    Value sign = b.bitAnd(getUpper(word), int64_t(0x80008000));
    Value half =
        arith::OrIOp::create(b, sign, b.shiftRight(getUpper(magnitudes), 1));
    auto pair = VectorType::get({2}, b.getF16Type());
    Value factors = arith::ConstantOp::create(
        b, DenseElementsAttr::get(pair, b.getF16FloatAttr(256.0f)));
    Value scaled = LLVM::FMulOp::create(
        b, LLVM::BitcastOp::create(b, pair, half), factors);
    words[i] = LLVM::BitcastOp::create(b, b.getI32Type(), scaled);
  }
  return words;
}

std::array<Value, 2> fp8::convertCodes(KernelBuilder &b, Value word, Type type,
                                       Type wide) {
  if (wide.isF16())
    return expandCodes(b, word, type);
  // The bits of a code at those of a number whose exponent has another bias,
  // which a product makes up for; subnormal ones are exact as well.
  bool isE5M2 = isa<Float8E5M2Type>(type);
  auto pair = VectorType::get({2}, wide);
  Value factor = arith::ConstantOp::create(
      b, DenseElementsAttr::get(
             pair, b.getFloatAttr(wide, std::ldexp(1.0, isE5M2 ? 112 : 120))
                       .getValue()));
  // NaN, and infinities of E5M2, carry into the sign.
  Value sums = b.add(b.bitAnd(word, 0x7f7f7f7f),
                     isE5M2 ? int64_t(0x04040404) : int64_t(0x01010101));
  std::array<Value, 2> numbers;
  for (auto [converted, selector] :
       llvm::zip_equal(numbers, std::array{0x1404, 0x3424})) {
    auto spread = [&](Value bytes) {
      return NVVM::PermuteOp::create(b, b.getI32Type(), bytes, b.i32(0),
                                     b.i32(selector),
                                     NVVM::PermuteMode::DEFAULT)
          .getResult();
    };
    Value code = spread(word);
    Value carry = b.bitAnd(spread(sums), int64_t(0x80008000));
    // Their exponents get all bits.
    Value exponents = b.sub(carry, b.shiftRight(carry, 8));
    Value bits = arith::OrIOp::create(
        b, b.shiftRight(b.bitAnd(code, int64_t(0x7f007f00)), isE5M2 ? 3 : 4),
        b.bitAnd(code, int64_t(0x80008000)));
    bits = arith::OrIOp::create(b, bits, exponents);
    Value number = arith::MulFOp::create(
        b, LLVM::BitcastOp::create(b, pair, bits), factor);
    converted = LLVM::BitcastOp::create(b, b.getI32Type(), number);
  }
  return numbers;
}

//===----------------------------------------------------------------------===//
// To codes
//===----------------------------------------------------------------------===//

namespace {
/// Bits of the mantissa, the exponent's bias, and the largest number.
struct CodeFormat {
  int64_t mantissa, bias;
  float largest;

  static CodeFormat get(Type type) {
    return isa<Float8E5M2Type>(type) ? CodeFormat{2, 15, 57344.0f}
                                     : CodeFormat{3, 7, 448.0f};
  }
};
} // namespace

static int64_t getBits(float number) {
  return llvm::bit_cast<uint32_t>(number);
}

/// The nearest code (i32) of an f32, the largest one beyond it, and of a NaN
/// 0x7f.
static Value encode(KernelBuilder &b, Value number, CodeFormat format) {
  constexpr int64_t mantissaOfF32 = 23, biasOfF32 = 127;
  Type i32 = b.getI32Type();
  Value bits = arith::BitcastOp::create(b, i32, number);
  Value magnitude = b.bitAnd(bits, 0x7fffffff);
  Value isNaN = b.less(b.i32(getBits(INFINITY)), magnitude);
  magnitude = b.min(magnitude, b.i32(getBits(format.largest)));
  // To even: half of the last place, less one unless that is odd.
  int64_t dropped = mantissaOfF32 - format.mantissa;
  Value rounded =
      b.add(b.add(magnitude, b.bitAnd(b.shiftRight(magnitude, dropped), 1)),
            (int64_t(1) << (dropped - 1)) - 1);
  Value normal = b.sub(b.shiftRight(rounded, dropped),
                       b.i32((biasOfF32 - format.bias) << format.mantissa));
  // Subnormal codes are the last bits of an f32 at this place.
  float smallest = std::ldexp(1.0f, int(1 - format.bias));
  float place = std::ldexp(smallest, int(mantissaOfF32 - format.mantissa));
  Value sum = arith::AddFOp::create(
      b, arith::BitcastOp::create(b, b.getF32Type(), magnitude), b.f32(place));
  Value subnormal =
      b.sub(arith::BitcastOp::create(b, i32, sum), b.i32(getBits(place)));
  Value code =
      b.select(b.less(magnitude, b.i32(getBits(smallest))), subnormal, normal);
  code = arith::OrIOp::create(b, code, b.bitAnd(b.shiftRight(bits, 24), 0x80));
  return b.select(isNaN, b.i32(0x7f), code);
}

static Value expand(KernelBuilder &b, NVVM::ConvertF32x2ToF8x2Op op) {
  CodeFormat format = CodeFormat::get(op.getDstTy());
  // The first operand goes to the upper half.
  Value both =
      arith::OrIOp::create(b, shiftLeft(b, encode(b, op.getA(), format), 8),
                           encode(b, op.getB(), format));
  Value half = arith::TruncIOp::create(b, b.getI16Type(), both);
  return LLVM::BitcastOp::create(b, op.getType(), half);
}

static Value expand(KernelBuilder &b, NVVM::ConvertF8x2ToF16x2Op op) {
  Value both = LLVM::BitcastOp::create(b, b.getI16Type(), op.getSrc());
  Value word = arith::ExtUIOp::create(b, b.getI32Type(), both);
  return LLVM::BitcastOp::create(b, op.getType(),
                                 expandCodes(b, word, op.getSrcType())[0]);
}

void fp8::expandConversions(LLVM::LLVMFuncOp function) {
  function.walk([](Operation *op) {
    KernelBuilder b(op->getLoc(), op);
    Value expanded;
    if (auto toCodes = dyn_cast<NVVM::ConvertF32x2ToF8x2Op>(op))
      expanded = expand(b, toCodes);
    else if (auto fromCodes = dyn_cast<NVVM::ConvertF8x2ToF16x2Op>(op))
      expanded = expand(b, fromCodes);
    else
      return;
    op->getResult(0).replaceAllUsesWith(expanded);
    op->erase();
  });
}
