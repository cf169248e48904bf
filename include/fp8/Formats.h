//===- Formats.h - Floating-point formats -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formats of Formats.def as constants, for the runtime too, which knows no
// MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_FORMATS_H
#define FP8_FORMATS_H

#include <cstdint>

namespace fp8rt {

/// The codes that are no finite number: none; the largest one, NaN; or, as in
/// IEEE 754, those of the largest exponent, Inf and NaN.
enum class Specials : uint8_t { None, Largest, Top };

struct NumberFormat {
  /// As options, states and tuning tables have it: "e4m3".
  const char *name;
  /// As MLIR has it: "f8E4M3FN".
  const char *mlirName;
  int signBits, exponentBits, mantissaBits;
  Specials specials;
  /// Whether a scaled tensor may hold it, and whether its factors may.
  bool isCode, isFactor;

  constexpr int getBits() const {
    return signBits + exponentBits + mantissaBits;
  }
  constexpr int getBias() const { return (1 << (exponentBits - 1)) - 1; }
  /// The last code without a sign, finite or not.
  constexpr uint32_t getLastCode() const {
    return (uint32_t(1) << (exponentBits + mantissaBits)) - 1;
  }
  constexpr uint32_t getInfCode() const {
    return getLastCode() >> mantissaBits << mantissaBits;
  }
  constexpr uint32_t getLargestCode() const {
    return specials == Specials::Top       ? getInfCode() - 1
           : specials == Specials::Largest ? getLastCode() - 1
                                           : getLastCode();
  }
  /// The largest finite value.
  constexpr float getLargest() const {
    uint32_t code = getLargestCode(), one = uint32_t(1) << mantissaBits;
    float value = static_cast<float>((code & (one - 1)) | one) / one;
    int exponent = static_cast<int>(code >> mantissaBits) - getBias();
    for (; exponent > 0; --exponent)
      value *= 2.0f;
    return value;
  }
};

// kE4M3, kE5M2, ...
#define FP8_CODE_FORMAT(NAME, TEXT, TYPE, MLIR, DTYPE, SIGN, EXPONENT,         \
                        MANTISSA, SPECIALS, FACTOR)                            \
  inline constexpr NumberFormat k##NAME{                                       \
      TEXT, MLIR, SIGN, EXPONENT, MANTISSA, Specials::SPECIALS, true, FACTOR};
#define FP8_FORMAT(NAME, TEXT, TYPE, MLIR, DTYPE, SIGN, EXPONENT, MANTISSA,    \
                   SPECIALS, FACTOR)                                           \
  inline constexpr NumberFormat                                                \
      k##NAME{TEXT,  MLIR,  SIGN, EXPONENT, MANTISSA, Specials::SPECIALS,      \
              false, FACTOR};
#include "fp8/Formats.def"

inline constexpr const NumberFormat *kFormats[] = {
#define FP8_FORMAT(NAME, ...) &k##NAME,
#include "fp8/Formats.def"
};

/// What tensor cores multiply, by fp8rt_tensor_core_type.
inline constexpr NumberFormat kTensorCoreFormats[] = {
#define FP8_TENSOR_CORE_TYPE(NAME, TEXT, TYPE, NUMBER, EXPONENT, MANTISSA,     \
                             SPECIALS)                                         \
  {TEXT, "", 1, EXPONENT, MANTISSA, Specials::SPECIALS, false, false},
#include "fp8/Formats.def"
};

inline constexpr int kTensorCoreNumbers[] = {
#define FP8_TENSOR_CORE_TYPE(NAME, TEXT, TYPE, NUMBER, ...) NUMBER,
#include "fp8/Formats.def"
};
constexpr bool areInOrder() {
  int next = 0;
  for (int number : kTensorCoreNumbers)
    if (number != next++)
      return false;
  return true;
}
static_assert(areInOrder(), "expected numbers from 0 on");

} // namespace fp8rt

#endif // FP8_FORMATS_H
