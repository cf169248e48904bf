//===- Floats.h - Narrow floating-point numbers -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX's conversions: nearest even, and what is too large is the largest finite
// number (.satfinite) or infinite.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TENSORCORE_FLOATS_H
#define FP8_LIB_TENSORCORE_FLOATS_H

#include "fp8/Formats.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace fp8emu {

inline uint32_t toBits(float x) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof(word));
  return word;
}
inline float toFloat(uint32_t word) {
  float x;
  std::memcpy(&x, &word, sizeof(x));
  return x;
}

inline float fromBF16(uint16_t x) { return toFloat(uint32_t{x} << 16); }

inline uint16_t toBF16(float x) {
  uint32_t word = toBits(x);
  if (x != x)
    return 0x7fff;
  return static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

/// To a format with so many bits of exponent and mantissa, as a code without
/// its sign; beyond is what overflows to, as is NaN.
template <int Exponent, int Mantissa>
inline uint32_t roundMagnitude(uint32_t magnitude) {
  constexpr int bias = (1 << (Exponent - 1)) - 1;
  constexpr int drop = 23 - Mantissa;
  int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent >= 1 - bias) {
    uint32_t rounded =
        magnitude + (1u << (drop - 1)) - 1 + (magnitude >> drop & 1);
    return (rounded >> drop) - (static_cast<uint32_t>(127 - bias) << Mantissa);
  }
  // Subnormal: the significand, shifted further.
  int shift = drop + (1 - bias - exponent);
  if (shift > 30)
    return 0;
  uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  if (magnitude < 0x800000)
    return 0;
  uint32_t kept = significand >> shift;
  uint32_t lost = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
  return kept + (lost > half || (lost == half && (kept & 1)));
}

/// To a format with so many bits and such codes, of NaN to the largest one.
/// What is too large is infinite, if there is such a number and the conversion
/// does not saturate, else the largest finite one.
template <int Exponent, int Mantissa, fp8rt::Specials Codes,
          bool Saturates = false>
inline uint32_t encodeFloat(float x) {
  constexpr fp8rt::NumberFormat format{"",       "",    1,     Exponent,
                                       Mantissa, Codes, false, false};
  constexpr bool isInf = Codes == fp8rt::Specials::Top && !Saturates;
  constexpr uint32_t over =
      isInf ? format.getInfCode() : format.getLargestCode();
  uint32_t word = toBits(x), magnitude = word & 0x7fffffff;
  if (x != x)
    return format.getLastCode();
  uint32_t code = magnitude >= 0x7f800000
                      ? over
                      : roundMagnitude<Exponent, Mantissa>(magnitude);
  return (code > over ? over : code) | word >> 31 << (Exponent + Mantissa);
}

template <int Exponent, int Mantissa, fp8rt::Specials Codes>
inline float decodeFloat(uint32_t code) {
  constexpr fp8rt::NumberFormat format{"",       "",    1,     Exponent,
                                       Mantissa, Codes, false, false};
  constexpr int bias = format.getBias();
  // The upper bits of an f32, NaN's too.
  if constexpr (Exponent == 8)
    return toFloat(code << (23 - Mantissa));
  uint32_t field = code >> Mantissa & ((1 << Exponent) - 1);
  uint32_t mantissa = code & ((1 << Mantissa) - 1);
  float magnitude;
  if (Codes == fp8rt::Specials::Largest &&
      (code & format.getLastCode()) == format.getLastCode())
    return toFloat(0x7fffffff);
  if (Codes == fp8rt::Specials::Top && field == (1 << Exponent) - 1)
    magnitude = mantissa ? toFloat(0x7fffffff) : INFINITY;
  else if (field == 0)
    magnitude = std::ldexp(static_cast<float>(mantissa), 1 - bias - Mantissa);
  else
    magnitude =
        toFloat((field + 127 - bias) << 23 | mantissa << (23 - Mantissa));
  return code >> (Exponent + Mantissa) & 1 ? -magnitude : magnitude;
}

inline float fromF16(uint16_t x) {
  return decodeFloat<5, 10, fp8rt::Specials::Top>(x);
}
inline uint16_t toF16(float x) {
  return static_cast<uint16_t>(encodeFloat<5, 10, fp8rt::Specials::Top>(x));
}

} // namespace fp8emu

#endif // FP8_LIB_TENSORCORE_FLOATS_H
