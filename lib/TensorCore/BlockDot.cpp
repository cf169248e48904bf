//===- BlockDot.cpp - Sums of tcgen05.mma ---------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockDot.h"

#include "Floats.h"

#include <algorithm>
#include <cmath>

using namespace fp8emu;

static constexpr uint32_t kNaN = 0x7fffffff;

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

BlockSums::Factor BlockSums::getFactor(uint8_t code) const {
  if (products.scale == ScaleType::UE8M0)
    return {1, int32_t{code} - 127, code == 0xff};
  code &= 0x7f; // There is no sign.
  int32_t field = code >> 3, mantissa = code & 7;
  return {mantissa + (field > 0 ? 8 : 0), std::max(field, 1) - 7, code == 0x7f};
}

/// The factor of a row or column: all products have one, but for FP4.
static unsigned findFactor(const BlockProducts &products, unsigned k) {
  return k * products.factors / products.products;
}

double BlockSums::getScale(unsigned column, unsigned k) const {
  if (products.scale == ScaleType::None)
    return 1;
  unsigned which = findFactor(products, k);
  Factor a = getFactor(rowFactors[which]);
  Factor b = getFactor(columnFactors[column][which]);
  if (a.special || b.special)
    return toFloat(kNaN);
  int bits = products.scale == ScaleType::UE4M3 ? 6 : 0;
  return std::ldexp(a.significand * b.significand,
                    a.exponent + b.exponent - bits);
}

/// A factor that is NaN makes the sum one, whatever it is a factor of.
double BlockSums::sum(unsigned, unsigned column, float c) const {
  double total = std::isfinite(c) ? 0 : c;
  // A NaN stays one, whatever is added.
  for (unsigned k = 0; k < products.products && !std::isnan(total); ++k) {
    double scale = getScale(column, k);
    if (scale != scale)
      return scale;
    double product = getValue(products.typeA, rowCodes, k) *
                     getValue(products.typeB, columnCodes[column], k);
    if (!std::isfinite(product))
      total += products.negate ? -product : product;
  }
  return total;
}

//===----------------------------------------------------------------------===//
// Columns and rows
//===----------------------------------------------------------------------===//

void BlockSums::setColumns(const uint8_t (*codes)[kRowBytes],
                           const uint8_t (*factors)[kMaxFactors]) {
  columnCodes = codes;
  columnFactors = factors;
  for (unsigned n = 0; n < products.columns; ++n) {
    columns.special[n] = false;
    int32_t offset = 0;
    for (unsigned i = 0; i < products.factors; ++i) {
      Factor factor = getFactor(factors[n][i]);
      columns.special[n] |= factor.special;
      offset = factor.exponent;
    }
    if (isFP4()) {
      columnUsed[n] = 0;
      for (unsigned k = 0; k < kRowBytes; ++k) {
        columnHalves[n][k] =
            static_cast<int8_t>(2 * getValue(Element::E2M1, codes[n], k));
        columnUsed[n] |= uint64_t{columnHalves[n][k] != 0} << k;
      }
      continue;
    }
    for (unsigned k = 0; k < products.products; ++k) {
      Number number = loadNumber(products.typeB, codes[n], k);
      columns.significand[k][n] = number.significand;
      columns.exponent[k][n] = number.exponent + offset;
      columns.special[n] |= number.special;
    }
  }
}

void BlockSums::decodeRow() {
  unsigned guard = kWideFraction - getMantissaBits(products.typeA) -
                   getMantissaBits(products.typeB);
  row.special = false;
  int32_t offset = 0;
  for (unsigned i = 0; i < products.factors; ++i) {
    Factor factor = getFactor(rowFactors[i]);
    row.special |= factor.special;
    offset = factor.exponent;
  }
  if (isFP4())
    return;
  for (unsigned k = 0; k < products.products; ++k) {
    Number number = loadNumber(products.typeA, rowCodes, k);
    int32_t sign = products.negate ? -1 : 1;
    row.significand[k] = sign * number.significand * (1 << guard);
    row.exponent[k] = number.exponent + offset;
    row.special |= number.special;
  }
}

void BlockSums::addRow(const uint8_t *codes, const uint8_t *factors, bool fresh,
                       unsigned first, unsigned end, float *sums) {
  rowCodes = codes;
  rowFactors = factors;
  if (!products.exact)
    return addPlain(fresh, first, end, sums);
  decodeRow();
  if (isFP4())
    return addGroups(fresh, first, end, sums);
  if (products.half)
    return addHalves(fresh, first, end, sums);
  Products block{columns, products.products, fresh, *this};
  for (unsigned n = first; n < end; n += kColumnBlock)
    block.addWide(row, 0, n, sums + n);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// x * 2^shift, toward zero.
static int64_t moveBits(int64_t x, int shift) {
  int64_t magnitude = x < 0 ? -x : x;
  magnitude =
      shift >= 0 ? magnitude << shift : magnitude >> std::min(-shift, 63);
  return x < 0 ? -magnitude : magnitude;
}

static float toResult(double special) {
  return special != special ? toFloat(kNaN) : static_cast<float>(special);
}

/// sum * 2^unit to f16, of ties the even one.
static float roundHalf(int64_t sum, int unit) {
  if (sum == 0)
    return 0;
  double x = std::ldexp(static_cast<double>(sum), unit);
  int quantum = std::max(std::ilogb(x), -14) - 10;
  x = std::ldexp(std::nearbyint(std::ldexp(x, -quantum)), quantum);
  if (x == 0)
    return 0;
  return std::fabs(x) > 65504 ? std::copysign(INFINITY, static_cast<float>(x))
                              : static_cast<float>(x);
}

void BlockSums::addHalves(bool fresh, unsigned first, unsigned end,
                          float *sums) {
  constexpr int lowest = -21;
  for (unsigned n = first; n < end; ++n) {
    float old = fresh ? 0 : sums[n];
    if (row.special || columns.special[n] || !std::isfinite(old)) {
      double special = sum(0, n, old);
      if (special != 0) {
        sums[n] = toResult(special);
        continue;
      }
    }
    uint16_t code = toF16(old);
    Number c =
        loadNumber(Element::F16, reinterpret_cast<const uint8_t *>(&code), 0);
    int32_t reference = std::max(lowest, c.exponent);
    for (unsigned k = 0; k < products.products; ++k)
      reference = std::max(reference, row.exponent[k] + columns.exponent[k][n]);
    int64_t total =
        moveBits(c.significand, kWideFraction - 10 + c.exponent - reference);
    for (unsigned k = 0; k < products.products; ++k)
      total += moveBits(int64_t{row.significand[k]} * columns.significand[k][n],
                        row.exponent[k] + columns.exponent[k][n] - reference);
    sums[n] = roundHalf(total, reference - kWideFraction);
  }
}

void BlockSums::addGroups(bool fresh, unsigned first, unsigned end,
                          float *sums) {
  constexpr int fraction = 35, lowest = -139, groups = 4, width = 16;
  int8_t rowHalves[kRowBytes];
  uint64_t rowUsed = 0;
  for (unsigned k = 0; k < kRowBytes; ++k) {
    double value = getValue(Element::E2M1, rowCodes, k);
    rowHalves[k] = static_cast<int8_t>(2 * (products.negate ? -value : value));
    rowUsed |= uint64_t{value != 0} << k;
  }
  int bits = 2 + (products.scale == ScaleType::UE4M3 ? 6 : 0);
  for (unsigned n = first; n < end; ++n) {
    float old = fresh ? 0 : sums[n];
    if (row.special || columns.special[n] || !std::isfinite(old)) {
      sums[n] = toResult(sum(0, n, old));
      continue;
    }
    uint32_t word = toBits(old);
    int32_t field = word >> 23 & 0xff, mantissa = word & 0x7fffff;
    int64_t c = mantissa | (field ? 1 << 23 : 0);
    int32_t exponentC = c ? std::max(field, 1) - 127 : kNoExponent;
    int32_t reference = std::max(lowest, exponentC);
    int64_t terms[groups];
    int32_t exponents[groups];
    for (int g = 0; g < groups; ++g) {
      int32_t products16 = 0;
      for (int k = g * width; k < (g + 1) * width; ++k)
        products16 += rowHalves[k] * columnHalves[n][k];
      unsigned which = findFactor(products, static_cast<unsigned>(g * width));
      Factor a = getFactor(rowFactors[which]);
      Factor b = getFactor(columnFactors[n][which]);
      bool counts = (rowUsed & columnUsed[n]) >> g * width & 0xffff;
      terms[g] = int64_t{products16} * a.significand * b.significand;
      exponents[g] = a.exponent + b.exponent;
      if (counts && a.significand && b.significand)
        reference = std::max(reference, exponents[g]);
    }
    int64_t total =
        moveBits(word >> 31 ? -c : c, fraction - 23 + exponentC - reference);
    for (int g = 0; g < groups; ++g)
      if (terms[g])
        total += moveBits(terms[g], fraction - bits + exponents[g] - reference);
    sums[n] = roundWide(total, reference - fraction);
  }
}

void BlockSums::addPlain(bool fresh, unsigned first, unsigned end,
                         float *sums) {
  for (unsigned n = first; n < end; ++n) {
    float total = fresh ? 0 : sums[n];
    for (unsigned k = 0; k < products.products; ++k) {
      double product = getValue(products.typeA, rowCodes, k) *
                       getValue(products.typeB, columnCodes[n], k) *
                       getScale(n, k);
      total += static_cast<float>(products.negate ? -product : product);
    }
    sums[n] = products.half ? fromF16(toF16(total)) : total;
  }
}
