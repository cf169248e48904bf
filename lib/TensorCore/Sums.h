//===- Sums.h - Numbers as integers, and sums of their products -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TENSORCORE_SUMS_H
#define FP8_LIB_TENSORCORE_SUMS_H

#include "Dot.h"

namespace fp8emu {

/// Columns that are worked on at a time.
constexpr unsigned kColumnBlock = 8;
/// A zero's exponent: below all others.
constexpr int32_t kNoExponent = -8192;
/// The reference exponent is at least this (of sums in f32).
constexpr int32_t kLowestReference = -133;

/// value = significand * 2^(exponent - mantissa bits).
struct Number {
  int32_t significand, exponent;
  bool special; /* infinite or NaN */
};

/// Element k of a row.
Number loadNumber(Element type, const uint8_t *row, unsigned k);
/// The same of a number that the type has; and its code.
Number getNumber(Element type, float value);
uint32_t getCode(Element type, float value);
unsigned getMantissaBits(Element type);

struct DecodedRow {
  int32_t significand[kMaxProducts];
  int32_t exponent[kMaxProducts];
  bool special; /* one is infinite or NaN */
};

/// Columns side by side, as they are worked on.
struct alignas(64) DecodedColumns {
  int32_t significand[kMaxProducts][kMaxColumns];
  int32_t exponent[kMaxProducts][kMaxColumns];
  bool special[kMaxColumns];
};

/// What is infinite or NaN decides alone: the sum of those terms as IEEE has
/// it, or 0 if there is none. The accumulator is 0 unless it is one of them.
class SpecialTerms {
public:
  virtual double sum(unsigned row, unsigned column, float c) const = 0;

protected:
  ~SpecialTerms() = default;
};

/// A row by kColumnBlock columns, from `column` on.
struct Products {
  const DecodedColumns &columns;
  unsigned count; /* products of a sum */
  bool fresh;     /* the accumulator is 0 */
  const SpecialTerms &specials;

  /// Adds a row whose significands are moved up to where they are cut off: by
  /// the bits of a fraction less those of both mantissas. 13 bits of fraction,
  /// and of mantissa.
  void addNarrow(const DecodedRow &row, unsigned rowNumber, unsigned column,
                 float *out) const;
  /// 25 bits of fraction, 23 of mantissa.
  void addWide(const DecodedRow &row, unsigned rowNumber, unsigned column,
               float *out) const;
};

constexpr int kNarrowFraction = 13, kWideFraction = 25;

/// sum * 2^unit, cut off to f32.
float roundWide(int64_t sum, int unit);

} // namespace fp8emu

#endif // FP8_LIB_TENSORCORE_SUMS_H
