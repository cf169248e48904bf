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

inline uint16_t toF16(float x) {
  uint32_t word = toBits(x), magnitude = word & 0x7fffffff;
  if (x != x)
    return 0x7fff;
  uint32_t code = roundMagnitude<5, 10>(magnitude);
  if (code > 0x7c00 || magnitude >= 0x7f800000)
    code = 0x7c00;
  return static_cast<uint16_t>(code | word >> 31 << 15);
}

template <int Exponent, int Mantissa, bool TopIsSpecial>
inline float decodeFloat(uint32_t code) {
  constexpr int bias = (1 << (Exponent - 1)) - 1;
  uint32_t field = code >> Mantissa & ((1 << Exponent) - 1);
  uint32_t mantissa = code & ((1 << Mantissa) - 1);
  float magnitude;
  if (TopIsSpecial && field == (1 << Exponent) - 1)
    magnitude = mantissa ? toFloat(0x7fffffff) : INFINITY;
  else if (field == 0)
    magnitude = std::ldexp(static_cast<float>(mantissa), 1 - bias - Mantissa);
  else
    magnitude =
        toFloat((field + 127 - bias) << 23 | mantissa << (23 - Mantissa));
  return code >> (Exponent + Mantissa) & 1 ? -magnitude : magnitude;
}

inline float fromF16(uint16_t x) { return decodeFloat<5, 10, true>(x); }
inline float fromE5M2(uint8_t x) { return decodeFloat<5, 2, true>(x); }
inline float fromE4M3(uint8_t x) {
  return (x & 0x7f) == 0x7f ? toFloat(0x7fffffff) : decodeFloat<4, 3, false>(x);
}

/// .satfinite, the only form that PTX has for 8 bits.
inline uint8_t toE4M3(float x) {
  uint32_t word = toBits(x), magnitude = word & 0x7fffffff;
  if (x != x)
    return 0x7f;
  uint32_t code =
      magnitude >= 0x7f800000 ? 0x7e : roundMagnitude<4, 3>(magnitude);
  if (code > 0x7e)
    code = 0x7e;
  return static_cast<uint8_t>(code | word >> 31 << 7);
}

inline uint8_t toE5M2(float x) {
  uint32_t word = toBits(x), magnitude = word & 0x7fffffff;
  if (x != x)
    return 0x7f;
  uint32_t code =
      magnitude >= 0x7f800000 ? 0x7b : roundMagnitude<5, 2>(magnitude);
  if (code > 0x7b)
    code = 0x7b;
  return static_cast<uint8_t>(code | word >> 31 << 7);
}

} // namespace fp8emu

#endif // FP8_LIB_TENSORCORE_FLOATS_H
