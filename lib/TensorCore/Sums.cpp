//===- Sums.cpp - Numbers as integers, and sums of their products ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sums.h"

#include "Floats.h"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace fp8emu;
using fp8rt::NumberFormat;
using fp8rt::Specials;

namespace {
using Ints = int32_t __attribute__((vector_size(4 * kColumnBlock)));
using Floats = float __attribute__((vector_size(4 * kColumnBlock)));

constexpr uint32_t kNaN = 0x7fffffff;
} // namespace

/// The upper 19 bits of an f32 are what a tensor core takes of a TF32.
static uint32_t loadCode(Element type, const uint8_t *row, unsigned k) {
  uint32_t code = 0;
  std::memcpy(&code, row + k * getBytes(type), getBytes(type));
  return type == Element::TF32 ? code >> 13 : code;
}

static Number decode(Element type, uint32_t code) {
  const NumberFormat &format = getFormat(type);
  int mbits = format.mantissaBits, ebits = format.exponentBits;
  int bias = format.getBias();
  int field = static_cast<int>(code >> mbits) & ((1 << ebits) - 1);
  int mantissa = static_cast<int>(code) & ((1 << mbits) - 1);
  int top = (1 << ebits) - 1;
  bool special =
      format.specials != Specials::None && field == top &&
      (format.specials == Specials::Top || mantissa == (1 << mbits) - 1);
  int significand = mantissa + (field > 0 ? 1 << mbits : 0);
  if (special)
    significand = 0;
  if (code >> (ebits + mbits) & 1)
    significand = -significand;
  return {significand,
          significand == 0 ? kNoExponent : std::max(field, 1) - bias, special};
}

/// Numbers of 8 bits and less, all of them.
static const Number *getTable(Element type) {
  static const auto tables = [] {
    constexpr size_t count = std::size(fp8rt::kTensorCoreFormats);
    auto made = std::make_unique<Number[]>(256 * count);
    for (size_t i = 0; i < count; ++i)
      if (auto type = static_cast<Element>(i); getBytes(type) == 1)
        for (uint32_t code = 0; code < 256; ++code)
          made[256 * i + code] = decode(type, code);
    return made;
  }();
  return &tables[256 * static_cast<size_t>(type)];
}

Number fp8emu::loadNumber(Element type, const uint8_t *row, unsigned k) {
  if (getBytes(type) == 1)
    return getTable(type)[row[k]];
  return decode(type, loadCode(type, row, k));
}

Number fp8emu::getNumber(Element type, float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  const NumberFormat &format = getFormat(type);
  if (type == Element::TF32)
    word &= ~uint32_t{0x1fff};
  int field = static_cast<int>(word >> 23 & 0xff);
  if (field == 0xff)
    return {0, kNoExponent, true};
  auto significand = static_cast<int32_t>(word & 0x7fffff);
  int exponent = std::max(field, 1) - 127;
  if (field > 0)
    significand += 0x800000;
  // Numbers that the type has not normalized are not here either.
  int lowest = 2 - (1 << (format.exponentBits - 1));
  int up = std::max(lowest - exponent, 0);
  significand >>= std::min(23 - format.mantissaBits + up, 31);
  if (word >> 31)
    significand = -significand;
  return {significand, significand == 0 ? kNoExponent : exponent + up, false};
}

unsigned fp8emu::getMantissaBits(Element type) {
  return static_cast<unsigned>(getFormat(type).mantissaBits);
}

double fp8emu::getValue(Element type, const uint8_t *row, unsigned k) {
  uint32_t code = loadCode(type, row, k);
  switch (type) {
#define FP8_TENSOR_CORE_TYPE(NAME, TEXT, TYPE, NUMBER, EXPONENT, MANTISSA,     \
                             SPECIALS)                                         \
  case Element::NAME:                                                          \
    return decodeFloat<EXPONENT, MANTISSA, Specials::SPECIALS>(code);
#include "fp8/Formats.def"
  }
  return 0;
}

uint32_t fp8emu::getCode(Element type, float value) {
  switch (type) {
#define FP8_TENSOR_CORE_TYPE(NAME, TEXT, TYPE, NUMBER, EXPONENT, MANTISSA,     \
                             SPECIALS)                                         \
  case Element::NAME:                                                          \
    return encodeFloat<EXPONENT, MANTISSA, Specials::SPECIALS>(value);
#include "fp8/Formats.def"
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

static Floats powerOfTwo(Ints exponent) {
  return reinterpret_cast<Floats>((exponent + 127) << 23);
}

/// sum * 2^unit, cut off to 13 bits of mantissa; |sum| is below 2^24. In two
/// steps, the first of which is exact.
static Floats roundNarrow(Ints sum, Ints unit) {
  Ints half = unit >> 1;
  Floats x = __builtin_convertvector(sum, Floats);
  x = x * powerOfTwo(half) * powerOfTwo(unit - half);
  Ints word = reinterpret_cast<Ints>(x) & ~0x3ff;
  Ints isZero = (word & 0x7fffffff) == 0;
  return reinterpret_cast<Floats>(word & ~isZero);
}

/// To 23 bits, of a wider sum.
float fp8emu::roundWide(int64_t sum, int unit) {
  if (sum == 0)
    return 0;
  auto x = static_cast<double>(sum); // exact: below 2^53
  uint64_t word;
  std::memcpy(&word, &x, sizeof(word));
  word &= ~((uint64_t{1} << 29) - 1);
  std::memcpy(&x, &word, sizeof(x));
  // A power of two that f64 has: exponents of scales go to some 300.
  uint64_t power = static_cast<uint64_t>(unit + 1023) << 52;
  double scale;
  std::memcpy(&scale, &power, sizeof(scale));
  x *= scale;
  if (std::fabs(x) < 0x1p-126) {
    x = std::trunc(x * 0x1p149) * 0x1p-149;
    if (x == 0)
      return 0;
  }
  return static_cast<float>(x);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

static Ints loadInts(const int32_t *from) {
  Ints value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

static Ints larger(Ints a, Ints b) { return a > b ? a : b; }
static Ints smaller(Ints a, Ints b) { return a < b ? a : b; }

/// Some columns of the result.
template <bool Wide>
static void add(const Products &products, const DecodedRow &row,
                unsigned rowNumber, unsigned column, float *out) {
  constexpr int kFraction = Wide ? kWideFraction : kNarrowFraction;
  const DecodedColumns &columns = products.columns;
  unsigned count = products.count;
  Ints c = {};
  if (!products.fresh)
    std::memcpy(&c, out, sizeof(c));
  Ints field = c >> 23 & 0xff;
  Ints magnitude = (c & 0x7fffff) | (field > 0 ? Ints{} + 0x800000 : Ints{});
  Ints exponentC = larger(field, Ints{} + 1) - 127;
  Ints specialC = field == 255;
  exponentC = (c & 0x7fffffff) == 0 ? Ints{} + kNoExponent : exponentC;

  Ints reference = larger(exponentC, Ints{} + kLowestReference);
  for (unsigned k = 0; k < count; ++k)
    reference = larger(reference, loadInts(&columns.exponent[k][column]) +
                                      row.exponent[k]);

  // The accumulator, too, loses what is below the last bit.
  constexpr int up = kFraction > 23 ? kFraction - 23 : 0;
  constexpr int down = kFraction < 23 ? 23 - kFraction : 0;
  Ints sign = c >> 31;
  Ints low =
      ((magnitude << up) >> smaller(reference - exponentC + down, Ints{} + 31));
  low = (low ^ sign) - sign;
  Ints high = {};
  for (unsigned k = 0; k < count; ++k) {
    Ints shift =
        reference - row.exponent[k] - loadInts(&columns.exponent[k][column]);
    Ints product =
        loadInts(&columns.significand[k][column]) * row.significand[k];
    Ints negative = product >> 31;
    Ints term = (product ^ negative) - negative;
    term = (term >> smaller(shift, Ints{} + 31));
    term = (term ^ negative) - negative;
    if (Wide) { // 17 terms of 27 bits are more than 32
      low += term & 0xffff;
      high += term >> 16;
    } else {
      low += term;
    }
  }
  Floats result;
  if (Wide) {
    for (unsigned i = 0; i < kColumnBlock; ++i)
      result[i] = roundWide((int64_t{high[i]} << 16) + low[i],
                            reference[i] - kFraction);
  } else {
    result = roundNarrow(low, reference - kFraction);
  }
  for (unsigned i = 0; i < kColumnBlock; ++i) {
    if (!row.special && !columns.special[column + i] && !specialC[i])
      continue;
    double special = products.specials.sum(rowNumber, column + i,
                                           products.fresh ? 0 : out[i]);
    if (special != 0)
      result[i] =
          special != special ? toFloat(kNaN) : static_cast<float>(special);
  }
  std::memcpy(out, &result, sizeof(result));
}

void Products::addNarrow(const DecodedRow &row, unsigned rowNumber,
                         unsigned column, float *out) const {
  add<false>(*this, row, rowNumber, column, out);
}

void Products::addWide(const DecodedRow &row, unsigned rowNumber,
                       unsigned column, float *out) const {
  add<true>(*this, row, rowNumber, column, out);
}
