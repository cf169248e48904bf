//===- ConvertNarrow.cpp - cvt to and from formats of sm_100 --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pairs of e2m1, e2m3, e3m2 and ue8m0. Registers of 8 bits are rows of 16.
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"
#include "TensorCore/Floats.h"

using namespace fp8emu;

/// .satfinite: what is too large, and NaN, is the largest.
template <int Exponent, int Mantissa>
static uint8_t toSmall(float x) {
  return static_cast<uint8_t>(
      encodeFloat<Exponent, Mantissa, fp8rt::Specials::None>(x));
}

/// A power of two, of the magnitude; the next one above, or below.
template <bool Up>
static uint8_t toUE8M0(float x) {
  if (x != x)
    return 0xff;
  uint32_t magnitude = toBits(x) & 0x7fffffff;
  uint32_t exponent = magnitude >> 23, mantissa = magnitude & 0x7fffff;
  if (exponent == 0)
    return Up && mantissa > 0x400000;
  exponent += Up && mantissa != 0;
  return static_cast<uint8_t>(std::min(exponent, 0xfeu));
}

static float fromUE8M0(uint8_t code) {
  if (code == 0xff)
    return toFloat(0x7fffffff);
  return code ? toFloat(uint32_t{code} << 23) : toFloat(0x400000);
}

namespace {
/// The first source is the upper one.
template <uint8_t (*Convert)(float), unsigned Bits, bool Relu>
struct ToPair {
  uint16_t operator()(float a, float b) const {
    return static_cast<uint16_t>(convert(a) << Bits | convert(b));
  }
  static uint32_t convert(float x) {
    return Convert(Relu && !(x > 0) && x == x ? 0.0f : x);
  }
};
template <int Exponent, int Mantissa, unsigned Bits>
struct PairToF16 {
  static constexpr auto decode =
      decodeFloat<Exponent, Mantissa, fp8rt::Specials::None>;
  uint32_t operator()(uint16_t a) const {
    uint32_t low = a & ((1u << Bits) - 1),
             high = a >> Bits & ((1u << Bits) - 1);
    return uint32_t{toF16(decode(high))} << 16 | toF16(decode(low));
  }
};
struct UE8M0PairToBF16 {
  uint32_t operator()(uint16_t a) const {
    return uint32_t{toBF16(fromUE8M0(a >> 8))} << 16 |
           toBF16(fromUE8M0(a & 0xff));
  }
};
} // namespace

template <uint8_t (*Convert)(float), unsigned Bits>
static Handler pickToPair(bool relu) {
  return relu ? mapBinary<ToPair<Convert, Bits, true>, uint16_t, float>
              : mapBinary<ToPair<Convert, Bits, false>, uint16_t, float>;
}

bool fp8emu::decodeNarrowConversion(Decoder &decoder, Modifiers &modifiers,
                                    Op &op) {
  auto format = modifiers.takeOneOf({"e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2"});
  if (!format)
    return false;
  bool isScale = *format == 3;
  if (modifiers.take("f32")) {
    auto rounding = modifiers.takeOneOf({"rn", "rp", "rz"});
    modifiers.take("satfinite");
    bool relu = modifiers.take("relu");
    if (!rounding || (*rounding == 0) == isScale || (isScale && relu))
      decoder.fail("expected a rounding that the format has");
    decoder.expectOperands(3);
    op.d = decoder.destination(decoder.operand(0), 16);
    op.s[0] = decoder.sourceBits(decoder.operand(1), 32);
    op.s[1] = decoder.sourceBits(decoder.operand(2), 32);
    op.handler = *format == 0     ? pickToPair<toSmall<2, 1>, 4>(relu)
                 : *format == 1   ? pickToPair<toSmall<2, 3>, 8>(relu)
                 : *format == 2   ? pickToPair<toSmall<3, 2>, 8>(relu)
                 : *rounding == 1 ? pickToPair<toUE8M0<true>, 8>(false)
                                  : pickToPair<toUE8M0<false>, 8>(false);
    return true;
  }
  modifiers.take("rn");
  if (!modifiers.take(isScale ? "bf16x2" : "f16x2"))
    decoder.fail("expected types that go together");
  decoder.expectOperands(2);
  op.d = decoder.destination(decoder.operand(0), 32);
  op.s[0] = decoder.sourceBits(decoder.operand(1), 16);
  op.handler = *format == 0   ? mapUnary<PairToF16<2, 1, 4>, uint32_t, uint16_t>
               : *format == 1 ? mapUnary<PairToF16<2, 3, 8>, uint32_t, uint16_t>
               : *format == 2 ? mapUnary<PairToF16<3, 2, 8>, uint32_t, uint16_t>
                              : mapUnary<UE8M0PairToBF16, uint32_t, uint16_t>;
  return true;
}
