//===- Dot.cpp - Sums of the tensor cores, to the bit ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dot.h"

#include "Exec/Floats.h"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace fp8emu;

namespace {
constexpr unsigned kBlock = 8; /* columns at a time */
using Ints = int32_t __attribute__((vector_size(4 * kBlock)));
using Floats = float __attribute__((vector_size(4 * kBlock)));

constexpr int32_t kNoExponent = -8192;
/// The reference exponent is at least this (of wgmma into f32).
constexpr int32_t kLowestReference = -133;
constexpr uint32_t kNaN = 0x7fffffff;

struct Format {
  int exponentBits, mantissaBits;
  bool topIsSpecial; /* else the largest code alone is a NaN */
};

constexpr Format getFormat(Element type) {
  switch (type) {
  case Element::E4M3:
    return {4, 3, false};
  case Element::E5M2:
    return {5, 2, true};
  case Element::F16:
    return {5, 10, true};
  case Element::BF16:
    return {8, 7, true};
  case Element::TF32:
    return {8, 10, true};
  }
  return {};
}

struct Number {
  int32_t significand, exponent;
  bool special;
};
} // namespace

/// The upper 19 bits of an f32 are what a tensor core takes of a TF32.
static uint32_t loadCode(Element type, const uint8_t *row, unsigned k) {
  uint32_t code = 0;
  std::memcpy(&code, row + k * getBytes(type), getBytes(type));
  return type == Element::TF32 ? code >> 13 : code;
}

static Number decode(Element type, uint32_t code) {
  Format format = getFormat(type);
  int mbits = format.mantissaBits, ebits = format.exponentBits;
  int bias = (1 << (ebits - 1)) - 1;
  int field = static_cast<int>(code >> mbits) & ((1 << ebits) - 1);
  int mantissa = static_cast<int>(code) & ((1 << mbits) - 1);
  int top = (1 << ebits) - 1;
  bool special = format.topIsSpecial
                     ? field == top
                     : field == top && mantissa == (1 << mbits) - 1;
  int significand = mantissa + (field > 0 ? 1 << mbits : 0);
  if (special)
    significand = 0;
  if (code >> (ebits + mbits) & 1)
    significand = -significand;
  return {significand,
          significand == 0 ? kNoExponent : std::max(field, 1) - bias, special};
}

/// Of 8 bits, all of them.
static const Number *getTable(Element type) {
  static const auto tables = [] {
    auto made = std::make_unique<Number[]>(512);
    for (uint32_t code = 0; code < 256; ++code) {
      made[code] = decode(Element::E4M3, code);
      made[256 + code] = decode(Element::E5M2, code);
    }
    return made;
  }();
  return &tables[type == Element::E4M3 ? 0 : 256];
}

static Number load(Element type, const uint8_t *row, unsigned k) {
  if (getBytes(type) == 1)
    return getTable(type)[row[k]];
  return decode(type, loadCode(type, row, k));
}

double fp8emu::getValue(Element type, const uint8_t *row, unsigned k) {
  uint32_t code = loadCode(type, row, k);
  switch (type) {
  case Element::E4M3:
    return fromE4M3(static_cast<uint8_t>(code));
  case Element::E5M2:
    return fromE5M2(static_cast<uint8_t>(code));
  case Element::F16:
    return fromF16(static_cast<uint16_t>(code));
  case Element::BF16:
    return fromBF16(static_cast<uint16_t>(code));
  case Element::TF32:
    return toFloat(code << 13);
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

/// The same to 23 bits, of a wider sum.
static float roundWide(int64_t sum, int unit) {
  if (sum == 0)
    return 0;
  auto x = static_cast<double>(sum); // exact: below 2^53
  uint64_t word;
  std::memcpy(&word, &x, sizeof(word));
  word &= ~((uint64_t{1} << 29) - 1);
  std::memcpy(&x, &word, sizeof(x));
  x = std::ldexp(x, unit);
  if (std::fabs(x) < 0x1p-126) {
    x = std::trunc(x * 0x1p149) * 0x1p-149;
    if (x == 0)
      return 0;
  }
  return static_cast<float>(x);
}

/// What is infinite or NaN decides alone: the sum of those terms as IEEE has
/// it, or 0 if there is none.
static double sumSpecials(const Operands &operands, unsigned row,
                          unsigned column, float c) {
  double total = std::isfinite(c) ? 0 : c;
  unsigned count = 32 / getBytes(operands.typeA);
  for (unsigned k = 0; k < count; ++k) {
    double product = getValue(operands.typeA, operands.a[row], k) *
                     getValue(operands.typeB, operands.b[column], k);
    if (!std::isfinite(product))
      total += product;
  }
  return total;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {
/// Some columns of the result.
template <bool Wide>
struct Kernel {
  static constexpr int kFraction = Wide ? 25 : 13;

  const Operands &operands;
  const DecodedColumns &columns;
  unsigned count; /* products */
  bool fresh;

  void run(const DecodedRow &row, unsigned rowNumber, unsigned column,
           float *out) const;
};
} // namespace

static Ints loadInts(const int32_t *from) {
  Ints value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

static Ints larger(Ints a, Ints b) { return a > b ? a : b; }
static Ints smaller(Ints a, Ints b) { return a < b ? a : b; }

template <bool Wide>
void Kernel<Wide>::run(const DecodedRow &row, unsigned rowNumber,
                       unsigned column, float *out) const {
  Ints c = {};
  if (!fresh)
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

  // Of the accumulator, too, what is below the last bit is cut off.
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
    for (unsigned i = 0; i < kBlock; ++i)
      result[i] = roundWide((int64_t{high[i]} << 16) + low[i],
                            reference[i] - kFraction);
  } else {
    result = roundNarrow(low, reference - kFraction);
  }
  for (unsigned i = 0; i < kBlock; ++i) {
    if (!row.special && !columns.special[column + i] && !specialC[i])
      continue;
    double special =
        sumSpecials(operands, rowNumber, column + i, fresh ? 0 : out[i]);
    if (special != 0)
      result[i] =
          special != special ? toFloat(kNaN) : static_cast<float>(special);
  }
  std::memcpy(out, &result, sizeof(result));
}

template <bool Wide>
static void multiply(const Operands &operands, bool fresh,
                     float *accumulators) {
  static thread_local auto columns = std::make_unique<DecodedColumns>();
  unsigned count = 32 / getBytes(operands.typeA);
  // Products are moved up to where they are cut off.
  int guard = Kernel<Wide>::kFraction - getFormat(operands.typeA).mantissaBits -
              getFormat(operands.typeB).mantissaBits;
  for (unsigned n = 0; n < operands.columns; ++n) {
    columns->special[n] = false;
    for (unsigned k = 0; k < count; ++k) {
      Number number = load(operands.typeB, operands.b[n], k);
      columns->significand[k][n] = number.significand;
      columns->exponent[k][n] = number.exponent;
      columns->special[n] |= number.special;
    }
  }
  Kernel<Wide> kernel{operands, *columns, count, fresh};
  for (unsigned m = 0; m < kWarpRows; ++m) {
    DecodedRow row;
    row.special = false;
    for (unsigned k = 0; k < count; ++k) {
      Number number = load(operands.typeA, operands.a[m], k);
      row.significand[k] = number.significand * (1 << guard);
      row.exponent[k] = number.exponent;
      row.special |= number.special;
    }
    for (unsigned n = 0; n < operands.columns; n += kBlock)
      kernel.run(row, m, n, accumulators + m * operands.columns + n);
  }
}

void fp8emu::multiplyAccumulate(const Operands &operands, bool fresh,
                                float *accumulators) {
  if (getBytes(operands.typeA) == 1)
    multiply<false>(operands, fresh, accumulators);
  else
    multiply<true>(operands, fresh, accumulators);
}
