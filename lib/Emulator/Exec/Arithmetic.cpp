//===- Arithmetic.cpp - Integer and floating-point arithmetic -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Arithmetic.h"

using namespace fp8emu;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

template <class F, bool Signed>
static Handler pickInteger(unsigned bits) {
  using T16 = std::conditional_t<Signed, int16_t, uint16_t>;
  using T32 = std::conditional_t<Signed, int32_t, uint32_t>;
  using T64 = std::conditional_t<Signed, int64_t, uint64_t>;
  return bits == 16   ? mapBinary<F, T16, T16>
         : bits == 32 ? mapBinary<F, T32, T32>
         : bits == 64 ? mapBinary<F, T64, T64>
                      : nullptr;
}

template <class F>
static Handler pickInteger(Type type) {
  if (type.packed)
    return type.kind == Type::Signed
               ? mapBinary<Packed<OnS16<F>>, uint32_t, uint32_t>
               : mapBinary<Packed<F>, uint32_t, uint32_t>;
  return type.kind == Type::Signed ? pickInteger<F, true>(type.bits)
                                   : pickInteger<F, false>(type.bits);
}

template <class F, class T>
static Handler ternary() {
  return mapTernary<F, T, T>;
}

template <class F>
static Handler pickMad(Type type) {
  bool isSigned = type.kind == Type::Signed;
  switch (type.bits) {
  case 16:
    return isSigned ? ternary<F, int16_t>() : ternary<F, uint16_t>();
  case 32:
    return isSigned ? ternary<F, int32_t>() : ternary<F, uint32_t>();
  case 64:
    return isSigned ? ternary<F, int64_t>() : ternary<F, uint64_t>();
  }
  return nullptr;
}

static Handler pickWide(Type type, bool mad) {
  if (type.is(Type::Unsigned, 16))
    return mad ? mapTernary<MadWide, uint32_t, uint16_t, uint16_t, uint32_t>
               : mapBinary<MulWide, uint32_t, uint16_t>;
  if (type.is(Type::Signed, 16))
    return mad ? mapTernary<MadWide, int32_t, int16_t, int16_t, int32_t>
               : mapBinary<MulWide, int32_t, int16_t>;
  if (type.is(Type::Unsigned, 32))
    return mad ? mapTernary<MadWide, uint64_t, uint32_t, uint32_t, uint64_t>
               : mapBinary<MulWide, uint64_t, uint32_t>;
  if (type.is(Type::Signed, 32))
    return mad ? mapTernary<MadWide, int64_t, int32_t, int32_t, int64_t>
               : mapBinary<MulWide, int64_t, int32_t>;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static Type takeType(Decoder &decoder, Modifiers &modifiers) {
  std::optional<Type> type = modifiers.takeType();
  if (!type)
    decoder.fail("expected a type");
  return *type;
}

static void decodeSources(Decoder &decoder, Op &op, Type type, size_t count) {
  decoder.expectOperands(count + 1);
  op.d = decoder.destination(decoder.operand(0), type.registerBits());
  for (size_t i = 0; i < count; ++i)
    op.s[i] = decoder.source(i + 1, type);
}

/// A function of f32, or f64, and with 16 bits where F has them.
template <class F>
static Handler pickFloat2(Type type, bool ftz) {
  if (type.is(Type::Float, 32))
    return ftz ? mapBinary<Flushed<F>, float, float>
               : mapBinary<F, float, float>;
  if (type.is(Type::Float, 16))
    return type.packed ? mapBinary<Packed<OnF16<F>>, uint32_t, uint32_t>
                       : mapBinary<OnF16<F>, uint16_t, uint16_t>;
  if (type.is(Type::BFloat, 16))
    return type.packed ? mapBinary<Packed<OnBF16<F>>, uint32_t, uint32_t>
                       : mapBinary<OnBF16<F>, uint16_t, uint16_t>;
  return nullptr;
}

template <class F>
static Handler pickFloat1(Type type, bool ftz) {
  if (type.is(Type::Float, 32))
    return ftz ? mapUnary<Flushed<F>, float, float> : mapUnary<F, float, float>;
  if (type.is(Type::Float, 16))
    return type.packed ? mapUnary<Packed<OnF16<F>>, uint32_t, uint32_t>
                       : mapUnary<OnF16<F>, uint16_t, uint16_t>;
  if (type.is(Type::BFloat, 16))
    return type.packed ? mapUnary<Packed<OnBF16<F>>, uint32_t, uint32_t>
                       : mapUnary<OnBF16<F>, uint16_t, uint16_t>;
  return nullptr;
}

template <class F>
static void decodeFloatPair(Modifiers &modifiers, Op &op, Type type) {
  modifiers.take("rn");
  bool ftz = modifiers.take("ftz");
  op.handler = type.is(Type::Float, 64) ? mapBinary<F, double, double>
                                        : pickFloat2<F>(type, ftz);
}

template <class I, class F>
static void decodeAddSub(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (decodePackedArithmetic(decoder, modifiers, op) ||
      decodeMixedArithmetic(decoder, modifiers, op))
    return;
  Type type = takeType(decoder, modifiers);
  decodeSources(decoder, op, type, 2);
  if (type.isInteger()) {
    op.handler = pickInteger<I>(type);
    return;
  }
  decodeFloatPair<F>(modifiers, op, type);
}

static void decodeMul(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (decodePackedArithmetic(decoder, modifiers, op))
    return;
  auto part = modifiers.takeOneOf({"lo", "hi", "wide"});
  Type type = takeType(decoder, modifiers);
  if (!type.isInteger()) {
    decodeSources(decoder, op, type, 2);
    return decodeFloatPair<MulF>(modifiers, op, type);
  }
  if (!part)
    decoder.fail("expected .lo, .hi or .wide");
  decoder.expectOperands(3);
  op.s[0] = decoder.source(1, type);
  op.s[1] = decoder.source(2, type);
  bool wide = *part == 2;
  op.d = decoder.destination(decoder.operand(0), type.bits << wide);
  op.handler = wide         ? pickWide(type, /*mad=*/false)
               : *part == 1 ? pickInteger<MulHi>(type)
                            : pickInteger<MulLo>(type);
}

static void decodeMad(Decoder &decoder, Modifiers &modifiers, Op &op) {
  auto part = modifiers.takeOneOf({"lo", "hi", "wide"});
  Type type = takeType(decoder, modifiers);
  if (!part)
    decoder.fail("expected .lo, .hi or .wide");
  decoder.expectOperands(4);
  bool wide = *part == 2;
  Type result = type;
  result.bits = static_cast<uint8_t>(type.bits << wide);
  op.s[0] = decoder.source(1, type);
  op.s[1] = decoder.source(2, type);
  op.s[2] = decoder.source(3, result);
  op.d = decoder.destination(decoder.operand(0), result.bits);
  op.handler = wide         ? pickWide(type, /*mad=*/true)
               : *part == 1 ? pickMad<MadHi>(type)
                            : pickMad<MadLo>(type);
}

template <class F>
static Handler pickFma16(Type type) {
  return type.packed ? mapTernary<Packed<F>, uint32_t, uint32_t>
                     : mapTernary<F, uint16_t, uint16_t>;
}

static void decodeFma(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (decodePackedArithmetic(decoder, modifiers, op) ||
      decodeMixedArithmetic(decoder, modifiers, op))
    return;
  Type type = takeType(decoder, modifiers);
  bool ftz = modifiers.take("ftz");
  if (!modifiers.take("rn"))
    decoder.fail("expected .rn");
  decodeSources(decoder, op, type, 3);
  if (type.bits == 16 && modifiers.take("relu")) {
    op.handler = type.kind == Type::Float ? pickFma16<FmaReluF16>(type)
                                          : pickFma16<FmaReluBF16>(type);
    return;
  }
  if (type.is(Type::Float, 32))
    op.handler = ftz ? mapTernary<Flushed<FmaF>, float, float>
                     : mapTernary<FmaF, float, float>;
  else if (type.is(Type::Float, 64))
    op.handler = mapTernary<FmaF, double, double>;
  else if (type.is(Type::Float, 16))
    op.handler = pickFma16<FmaF16>(type);
  else if (type.is(Type::BFloat, 16))
    op.handler = pickFma16<FmaBF16>(type);
}

static void decodeDiv(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = takeType(decoder, modifiers);
  decodeSources(decoder, op, type, 2);
  if (type.isInteger()) {
    op.handler = pickInteger<Div>(type);
    return;
  }
  modifiers.takeOneOf({"rn", "full", "approx"});
  bool ftz = modifiers.take("ftz");
  if (type.is(Type::Float, 64))
    op.handler = mapBinary<DivF, double, double>;
  else if (type.is(Type::Float, 32))
    op.handler = ftz ? mapBinary<Flushed<DivF>, float, float>
                     : mapBinary<DivF, float, float>;
}

template <class F>
static void decodeInteger2(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = takeType(decoder, modifiers);
  decodeSources(decoder, op, type, 2);
  if (type.isInteger())
    op.handler = pickInteger<F>(type);
}

/// The least, or the greatest, of three f32: sm_100 has that.
template <class F>
struct OfThree {
  float operator()(float a, float b, float c) const {
    return F()(F()(a, b), c);
  }
};

template <class F>
static Handler pickOfThree(bool ftz) {
  return ftz ? mapTernary<Flushed<OfThree<F>>, float, float>
             : mapTernary<OfThree<F>, float, float>;
}

template <class I, class F, class FNaN>
static void decodeMinMax(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = takeType(decoder, modifiers);
  if (type.isInteger()) {
    bool relu = type.kind == Type::Signed && (type.packed || type.bits == 32) &&
                modifiers.take("relu");
    op.handler = relu ? pickInteger<Relu<I>>(type) : pickInteger<I>(type);
  }
  bool nan = modifiers.take("NaN"), ftz = modifiers.take("ftz");
  bool xorSign = modifiers.take("xorsign") && modifiers.take("abs");
  size_t sources = decoder.numOperands() == 4 ? 3 : 2;
  decodeSources(decoder, op, type, sources);
  if (sources == 3) {
    if (!type.is(Type::Float, 32))
      decoder.fail("expected 2 sources, but got 3");
    op.handler = nan ? pickOfThree<FNaN>(ftz) : pickOfThree<F>(ftz);
    return;
  }
  if (type.isInteger())
    return;
  if (type.is(Type::Float, 64))
    op.handler = mapBinary<F, double, double>;
  else if (xorSign)
    op.handler = nan ? pickFloat2<XorSign<FNaN>>(type, ftz)
                     : pickFloat2<XorSign<F>>(type, ftz);
  else
    op.handler = nan ? pickFloat2<FNaN>(type, ftz) : pickFloat2<F>(type, ftz);
}

template <class I, class F>
static void decodeNegAbs(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = takeType(decoder, modifiers);
  decodeSources(decoder, op, type, 1);
  if (type.isInteger())
    op.handler = type.bits == 16   ? mapUnary<I, int16_t, int16_t>
                 : type.bits == 32 ? mapUnary<I, int32_t, int32_t>
                 : type.bits == 64 ? mapUnary<I, int64_t, int64_t>
                                   : nullptr;
  else if (type.is(Type::Float, 64))
    op.handler = mapUnary<F, double, double>;
  else
    op.handler = pickFloat1<F>(type, modifiers.take("ftz"));
}

template <class F>
static void decodeFunction1(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = takeType(decoder, modifiers);
  modifiers.takeOneOf({"rn", "approx"});
  bool ftz = modifiers.take("ftz");
  decodeSources(decoder, op, type, 1);
  if constexpr (std::is_same_v<decltype(F()(0.0)), double>)
    if (type.is(Type::Float, 64)) {
      op.handler = mapUnary<F, double, double>;
      return;
    }
  op.handler = pickFloat1<F>(type, ftz);
}

/// The sign of the first with the magnitude of the second (PTX ISA 9.7.3).
template <class T>
struct CopySign {
  T operator()(T a, T b) const { return std::copysign(b, a); }
};

static void decodeCopySign(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = takeType(decoder, modifiers);
  decodeSources(decoder, op, type, 2);
  if (type.is(Type::Float, 32))
    op.handler = mapBinary<CopySign<float>, float, float>;
  else if (type.is(Type::Float, 64))
    op.handler = mapBinary<CopySign<double>, double, double>;
}

static void decodeSad(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = takeType(decoder, modifiers);
  decodeSources(decoder, op, type, 3);
  if (type.isInteger() && !type.packed)
    op.handler = pickMad<Sad>(type);
}

void fp8emu::addArithmetic(DecodeTable &table) {
  table["add"] = decodeAddSub<Add, AddF>;
  table["sub"] = decodeAddSub<Sub, SubF>;
  table["mul"] = decodeMul;
  table["mad"] = decodeMad;
  table["fma"] = decodeFma;
  table["div"] = decodeDiv;
  table["rem"] = decodeInteger2<Rem>;
  table["min"] = decodeMinMax<Min, MinF, MinNaNF>;
  table["max"] = decodeMinMax<Max, MaxF, MaxNaNF>;
  table["neg"] = decodeNegAbs<Neg, NegF>;
  table["abs"] = decodeNegAbs<Abs, AbsF>;
  table["copysign"] = decodeCopySign;
  table["sad"] = decodeSad;
  table["rcp"] = decodeFunction1<RcpF>;
  table["sqrt"] = decodeFunction1<SqrtF>;
  table["rsqrt"] = decodeFunction1<RsqrtF>;
  table["ex2"] = decodeFunction1<Ex2F>;
  table["lg2"] = decodeFunction1<Lg2F>;
  table["sin"] = decodeFunction1<SinF>;
  table["cos"] = decodeFunction1<CosF>;
  table["tanh"] = decodeFunction1<TanhF>;
}
