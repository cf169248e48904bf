//===- Convert.cpp - cvt and cvta -----------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Arithmetic.h"
#include "Exec/Lanes.h"
#include "TensorCore/Floats.h"

#include <limits>

using namespace fp8emu;

//===----------------------------------------------------------------------===//
// Functions of a lane
//===----------------------------------------------------------------------===//

namespace {
/// Between integers: what does not fit is cut off, or with Saturate the nearest
/// that does.
template <class D, class A, bool Saturate>
struct IntToInt {
  template <class R>
  R operator()(R a) const {
    return static_cast<R>(convert(static_cast<A>(a)));
  }
  static D convert(A a) {
    if constexpr (Saturate) {
      if constexpr (std::is_signed_v<A>) {
        auto wide = static_cast<__int128>(a);
        if (wide < std::numeric_limits<D>::min())
          return std::numeric_limits<D>::min();
        if (wide > static_cast<__int128>(std::numeric_limits<D>::max()))
          return std::numeric_limits<D>::max();
      } else if (static_cast<unsigned __int128>(a) >
                 static_cast<unsigned __int128>(
                     std::numeric_limits<D>::max())) {
        return std::numeric_limits<D>::max();
      }
    }
    return static_cast<D>(a);
  }
};

enum class Rounding { Nearest, Zero, Down, Up };

template <class T>
T roundTo(T x, Rounding how) {
  switch (how) {
  case Rounding::Nearest:
    return std::nearbyint(x);
  case Rounding::Zero:
    return std::trunc(x);
  case Rounding::Down:
    return std::floor(x);
  case Rounding::Up:
    return std::ceil(x);
  }
  return x;
}

/// To an integer: always the nearest that there is; of NaN 0.
template <class D, class A, Rounding How>
struct FloatToInt {
  D operator()(A a) const {
    if (a != a)
      return 0;
    A rounded = roundTo(a, How);
    constexpr A limit = sizeof(D) == 8   ? A(0x1p63)
                        : sizeof(D) == 4 ? A(0x1p31)
                                         : A(0x1p15);
    constexpr A high = std::is_signed_v<D> ? limit : 2 * limit;
    if (rounded >= high)
      return std::numeric_limits<D>::max();
    if (rounded < (std::is_signed_v<D> ? -limit : A(0)))
      return std::numeric_limits<D>::min();
    return static_cast<D>(rounded);
  }
};
template <Rounding How>
struct RoundFloat {
  float operator()(float a) const { return canonical(roundTo(a, How)); }
  double operator()(double a) const { return roundTo(a, How); }
};
template <Rounding How>
struct RoundHalf {
  uint16_t operator()(uint16_t a) const {
    return toF16(roundTo(fromF16(a), How));
  }
};
struct IntToFloat {
  template <class A>
  float operator()(A a) const {
    return static_cast<float>(a);
  }
};
struct IntToDouble {
  template <class A>
  double operator()(A a) const {
    return static_cast<double>(a);
  }
};
/// Through f32, which has all integers below the largest f16.
struct IntToHalf {
  template <class A>
  uint16_t operator()(A a) const {
    return toF16(static_cast<float>(a));
  }
};
struct FloatToDouble {
  double operator()(float a) const { return a; }
};
struct HalfToDouble {
  double operator()(uint16_t a) const { return fromF16(a); }
};
struct BF16ToDouble {
  double operator()(uint16_t a) const { return canonical(fromBF16(a)); }
};
struct DoubleToFloat {
  float operator()(double a) const { return canonical(static_cast<float>(a)); }
};
struct HalfToFloat {
  float operator()(uint16_t a) const { return fromF16(a); }
};
struct BF16ToFloat {
  float operator()(uint16_t a) const { return canonical(fromBF16(a)); }
};
struct ToHalf {
  uint16_t operator()(float a) const { return toF16(a); }
};
struct ToBF16 {
  uint16_t operator()(float a) const { return toBF16(a); }
};
struct Same {
  float operator()(float a) const { return a; }
};
struct SaturateFloat {
  float operator()(float a) const { return a > 0 ? (a < 1 ? a : 1.0f) : 0.0f; }
};

/// The first source is the upper half.
template <uint16_t (*Convert)(float), bool Relu>
struct Pair16 {
  uint32_t operator()(float a, float b) const {
    return static_cast<uint32_t>(Convert(relu(a))) << 16 | Convert(relu(b));
  }
  static float relu(float x) { return Relu && x <= 0 ? 0.0f : x; }
};
template <uint8_t (*Convert)(float), bool Relu>
struct Pair8 {
  uint16_t operator()(float a, float b) const {
    return static_cast<uint16_t>(Convert(relu(a)) << 8 | Convert(relu(b)));
  }
  static float relu(float x) { return Relu && x <= 0 ? 0.0f : x; }
};
/// .satfinite, the only form that PTX has for 8 bits.
template <const fp8rt::NumberFormat &format>
uint8_t toCode(float x) {
  return static_cast<uint8_t>(
      encodeFloat<format.exponentBits, format.mantissaBits, format.specials,
                  /*Saturates=*/true>(x));
}
template <const fp8rt::NumberFormat &format>
float fromCode(uint8_t x) {
  return decodeFloat<format.exponentBits, format.mantissaBits, format.specials>(
      x);
}
template <float (*Convert)(uint8_t)>
struct Pair8ToF16 {
  uint32_t operator()(uint16_t a) const {
    return static_cast<uint32_t>(toF16(Convert(a >> 8))) << 16 |
           toF16(Convert(a & 0xff));
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Registers may be wider than the types: the source's upper bits are ignored,
/// the result's are copies of its sign or zeros.
template <class D, class A, class RD, class RA, bool Saturate>
static Step convertInteger(Warp &warp, const Op &op, Mask mask) {
  const RA *a = warp.row<RA>(op.s[0]);
  alignas(64) RD results[kLanes];
  for (unsigned i = 0; i < kLanes; ++i)
    results[i] = static_cast<RD>(
        IntToInt<D, A, Saturate>::convert(static_cast<A>(a[i])));
  assign(warp.row<RD>(op.d), results, mask);
  return Step::Next;
}

template <class D, class A, class RD, bool Saturate>
static Handler pickSourceRegister(unsigned bits) {
  return bits == 16   ? convertInteger<D, A, RD, uint16_t, Saturate>
         : bits == 32 ? convertInteger<D, A, RD, uint32_t, Saturate>
         : bits == 64 ? convertInteger<D, A, RD, uint64_t, Saturate>
                      : nullptr;
}

template <class D, class A, bool Saturate>
static Handler pickRegisters(unsigned dBits, unsigned aBits) {
  return dBits == 16   ? pickSourceRegister<D, A, uint16_t, Saturate>(aBits)
         : dBits == 32 ? pickSourceRegister<D, A, uint32_t, Saturate>(aBits)
         : dBits == 64 ? pickSourceRegister<D, A, uint64_t, Saturate>(aBits)
                       : nullptr;
}

template <class D, bool Saturate>
static Handler pickSource(Type a, unsigned dBits, unsigned aBits) {
  bool isSigned = a.kind == Type::Signed;
  switch (a.bits) {
  case 8:
    return isSigned ? pickRegisters<D, int8_t, Saturate>(dBits, aBits)
                    : pickRegisters<D, uint8_t, Saturate>(dBits, aBits);
  case 16:
    return isSigned ? pickRegisters<D, int16_t, Saturate>(dBits, aBits)
                    : pickRegisters<D, uint16_t, Saturate>(dBits, aBits);
  case 32:
    return isSigned ? pickRegisters<D, int32_t, Saturate>(dBits, aBits)
                    : pickRegisters<D, uint32_t, Saturate>(dBits, aBits);
  case 64:
    return isSigned ? pickRegisters<D, int64_t, Saturate>(dBits, aBits)
                    : pickRegisters<D, uint64_t, Saturate>(dBits, aBits);
  }
  return nullptr;
}

template <bool Saturate>
static Handler pickIntToInt(Type d, Type a, unsigned dBits, unsigned aBits) {
  bool isSigned = d.kind == Type::Signed;
  switch (d.bits) {
  case 8:
    return isSigned ? pickSource<int8_t, Saturate>(a, dBits, aBits)
                    : pickSource<uint8_t, Saturate>(a, dBits, aBits);
  case 16:
    return isSigned ? pickSource<int16_t, Saturate>(a, dBits, aBits)
                    : pickSource<uint16_t, Saturate>(a, dBits, aBits);
  case 32:
    return isSigned ? pickSource<int32_t, Saturate>(a, dBits, aBits)
                    : pickSource<uint32_t, Saturate>(a, dBits, aBits);
  case 64:
    return isSigned ? pickSource<int64_t, Saturate>(a, dBits, aBits)
                    : pickSource<uint64_t, Saturate>(a, dBits, aBits);
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Floats and integers
//===----------------------------------------------------------------------===//

template <class D, class A>
static Handler pickRounding(unsigned how) {
  switch (how) {
  case 0:
    return mapUnary<FloatToInt<D, A, Rounding::Nearest>, D, A>;
  case 1:
    return mapUnary<FloatToInt<D, A, Rounding::Zero>, D, A>;
  case 2:
    return mapUnary<FloatToInt<D, A, Rounding::Down>, D, A>;
  default:
    return mapUnary<FloatToInt<D, A, Rounding::Up>, D, A>;
  }
}

/// Converts to 16 bits: f32 has all of them.
template <class D, class A, Rounding How>
struct NarrowToInt {
  D operator()(uint16_t a) const { return FloatToInt<D, float, How>()(A()(a)); }
};

template <class D, class A>
static Handler pickNarrowRounding(unsigned how) {
  switch (how) {
  case 0:
    return mapUnary<NarrowToInt<D, A, Rounding::Nearest>, D, uint16_t>;
  case 1:
    return mapUnary<NarrowToInt<D, A, Rounding::Zero>, D, uint16_t>;
  case 2:
    return mapUnary<NarrowToInt<D, A, Rounding::Down>, D, uint16_t>;
  default:
    return mapUnary<NarrowToInt<D, A, Rounding::Up>, D, uint16_t>;
  }
}

template <class A>
static Handler pickNarrowToInt(Type d, unsigned how) {
  bool isSigned = d.kind == Type::Signed;
  switch (d.bits) {
  case 16:
    return isSigned ? pickNarrowRounding<int16_t, A>(how)
                    : pickNarrowRounding<uint16_t, A>(how);
  case 32:
    return isSigned ? pickNarrowRounding<int32_t, A>(how)
                    : pickNarrowRounding<uint32_t, A>(how);
  case 64:
    return isSigned ? pickNarrowRounding<int64_t, A>(how)
                    : pickNarrowRounding<uint64_t, A>(how);
  }
  return nullptr;
}

template <class A>
static Handler pickFloatToInt(Type d, unsigned how) {
  bool isSigned = d.kind == Type::Signed;
  switch (d.bits) {
  case 16:
    return isSigned ? pickRounding<int16_t, A>(how)
                    : pickRounding<uint16_t, A>(how);
  case 32:
    return isSigned ? pickRounding<int32_t, A>(how)
                    : pickRounding<uint32_t, A>(how);
  case 64:
    return isSigned ? pickRounding<int64_t, A>(how)
                    : pickRounding<uint64_t, A>(how);
  }
  return nullptr;
}

template <class F, class D>
static Handler pickIntToFloat(Type a) {
  bool isSigned = a.kind == Type::Signed;
  switch (a.bits) {
  case 16:
    return isSigned ? mapUnary<F, D, int16_t> : mapUnary<F, D, uint16_t>;
  case 32:
    return isSigned ? mapUnary<F, D, int32_t> : mapUnary<F, D, uint32_t>;
  case 64:
    return isSigned ? mapUnary<F, D, int64_t> : mapUnary<F, D, uint64_t>;
  }
  return nullptr;
}

/// To the integer that is nearest in a direction, of the same format.
template <Rounding How>
static Handler pickRoundFloat(Type type) {
  if (type.is(Type::Float, 64))
    return mapUnary<RoundFloat<How>, double, double>;
  if (type.is(Type::Float, 16))
    return mapUnary<OnF16<RoundFloat<How>>, uint16_t, uint16_t>;
  if (type.is(Type::BFloat, 16))
    return mapUnary<OnBF16<RoundFloat<How>>, uint16_t, uint16_t>;
  return mapUnary<RoundFloat<How>, float, float>;
}

static Handler pickRoundFloat(Type type, unsigned how) {
  switch (how) {
  case 0:
    return pickRoundFloat<Rounding::Nearest>(type);
  case 1:
    return pickRoundFloat<Rounding::Zero>(type);
  case 2:
    return pickRoundFloat<Rounding::Down>(type);
  default:
    return pickRoundFloat<Rounding::Up>(type);
  }
}

static void decodePair(Decoder &decoder, Modifiers &modifiers, Op &op) {
  auto format = modifiers.takeOneOf({"e4m3x2", "e5m2x2", "bf16x2", "f16x2"});
  bool relu = modifiers.take("relu");
  modifiers.take("satfinite");
  modifiers.take("rn");
  if (!modifiers.take("f32"))
    decoder.fail("expected a source of .f32");
  decoder.expectOperands(3);
  op.s[0] = decoder.sourceBits(decoder.operand(1), 32);
  op.s[1] = decoder.sourceBits(decoder.operand(2), 32);
  op.d = decoder.destination(decoder.operand(0), *format < 2 ? 16 : 32);
  switch (*format) {
  case 0:
    op.handler =
        relu ? mapBinary<Pair8<toCode<fp8rt::kE4M3>, true>, uint16_t, float>
             : mapBinary<Pair8<toCode<fp8rt::kE4M3>, false>, uint16_t, float>;
    break;
  case 1:
    op.handler =
        relu ? mapBinary<Pair8<toCode<fp8rt::kE5M2>, true>, uint16_t, float>
             : mapBinary<Pair8<toCode<fp8rt::kE5M2>, false>, uint16_t, float>;
    break;
  case 2:
    op.handler = relu ? mapBinary<Pair16<toBF16, true>, uint32_t, float>
                      : mapBinary<Pair16<toBF16, false>, uint32_t, float>;
    break;
  case 3:
    op.handler = relu ? mapBinary<Pair16<toF16, true>, uint32_t, float>
                      : mapBinary<Pair16<toF16, false>, uint32_t, float>;
    break;
  }
}

/// Two numbers of 8 bits as f16.
static void decodeWidening(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("rn");
  modifiers.take("f16x2");
  bool e4m3 = modifiers.take("e4m3x2");
  modifiers.take("e5m2x2");
  decoder.expectOperands(2);
  op.d = decoder.destination(decoder.operand(0), 32);
  op.s[0] = decoder.sourceBits(decoder.operand(1), 16);
  op.handler =
      e4m3 ? mapUnary<Pair8ToF16<fromCode<fp8rt::kE4M3>>, uint32_t, uint16_t>
           : mapUnary<Pair8ToF16<fromCode<fp8rt::kE5M2>>, uint32_t, uint16_t>;
}

/// A float as one that has no fewer bits, or an f64 as an f32.
static Handler pickToWide(Type d, Type a, bool nearest, bool saturate) {
  bool f32 = a.is(Type::Float, 32);
  bool f16 = a.is(Type::Float, 16), bf16 = a.is(Type::BFloat, 16);
  if (d.is(Type::Float, 64))
    return f32    ? mapUnary<FloatToDouble, double, float>
           : f16  ? mapUnary<HalfToDouble, double, uint16_t>
           : bf16 ? mapUnary<BF16ToDouble, double, uint16_t>
                  : nullptr;
  if (f32)
    return saturate ? mapUnary<SaturateFloat, float, float>
                    : mapUnary<Same, float, float>;
  if (a.is(Type::Float, 64) && nearest)
    return mapUnary<DoubleToFloat, float, double>;
  return f16    ? mapUnary<HalfToFloat, float, uint16_t>
         : bf16 ? mapUnary<BF16ToFloat, float, uint16_t>
                : nullptr;
}

static void decodeCvt(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (decodeNarrowConversion(decoder, modifiers, op))
    return;
  if (modifiers.has("f16x2") &&
      (modifiers.has("e4m3x2") || modifiers.has("e5m2x2")))
    return decodeWidening(decoder, modifiers, op);
  for (const char *pair : {"e4m3x2", "e5m2x2", "bf16x2", "f16x2"})
    if (modifiers.has(pair))
      return decodePair(decoder, modifiers, op);
  auto toInteger = modifiers.takeOneOf({"rni", "rzi", "rmi", "rpi"});
  bool nearest = modifiers.take("rn"), saturate = modifiers.take("sat");
  modifiers.take("ftz");
  std::optional<Type> d = modifiers.takeType(), a = modifiers.takeType();
  if (!d || !a)
    decoder.fail("expected two types");
  decoder.expectOperands(2);
  unsigned dBits, aBits;
  op.d = decoder.wideDestination(decoder.operand(0), d->bits, dBits);
  op.s[0] = decoder.wideSource(decoder.operand(1), a->bits, aBits);
  if (d->isInteger() && a->isInteger()) {
    op.handler = saturate ? pickIntToInt<true>(*d, *a, dBits, aBits)
                          : pickIntToInt<false>(*d, *a, dBits, aBits);
    return;
  }
  if (dBits != std::max<unsigned>(d->bits, 16) ||
      aBits != std::max<unsigned>(a->bits, 16))
    decoder.fail("expected registers of the types' sizes");
  bool f32 = a->is(Type::Float, 32), f64 = a->is(Type::Float, 64);
  if (d->isInteger() && toInteger) {
    op.handler =
        f32                       ? pickFloatToInt<float>(*d, *toInteger)
        : f64                     ? pickFloatToInt<double>(*d, *toInteger)
        : a->is(Type::Float, 16)  ? pickNarrowToInt<HalfToFloat>(*d, *toInteger)
        : a->is(Type::BFloat, 16) ? pickNarrowToInt<BF16ToFloat>(*d, *toInteger)
                                  : nullptr;
  } else if (a->isInteger() && nearest) {
    op.handler =
        d->is(Type::Float, 32)   ? pickIntToFloat<IntToFloat, float>(*a)
        : d->is(Type::Float, 64) ? pickIntToFloat<IntToDouble, double>(*a)
        : d->is(Type::Float, 16) ? pickIntToFloat<IntToHalf, uint16_t>(*a)
                                 : nullptr;
  } else if (toInteger && d->kind == a->kind && d->bits == a->bits) {
    op.handler = pickRoundFloat(*d, *toInteger);
  } else if (d->is(Type::Float, 32) || d->is(Type::Float, 64)) {
    op.handler = pickToWide(*d, *a, nearest, saturate);
  } else if (toInteger && d->is(Type::Float, 16) && a->is(Type::Float, 16)) {
    constexpr Handler handlers[] = {
        mapUnary<RoundHalf<Rounding::Nearest>, uint16_t, uint16_t>,
        mapUnary<RoundHalf<Rounding::Zero>, uint16_t, uint16_t>,
        mapUnary<RoundHalf<Rounding::Down>, uint16_t, uint16_t>,
        mapUnary<RoundHalf<Rounding::Up>, uint16_t, uint16_t>};
    op.handler = handlers[*toInteger];
  } else if (f32 && nearest && d->is(Type::Float, 16)) {
    op.handler = mapUnary<ToHalf, uint16_t, float>;
  } else if (f32 && nearest && d->is(Type::BFloat, 16)) {
    op.handler = mapUnary<ToBF16, uint16_t, float>;
  }
}

void fp8emu::addConversions(DecodeTable &table) { table["cvt"] = decodeCvt; }
