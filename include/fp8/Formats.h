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
#include <numeric>

namespace fp8rt {

/// How codes of so many bits lie in memory: in groups of whole bytes, the first
/// code in the lowest bits of a group's little-endian number. One of 8 bits is
/// a group; so are two of 4, in a byte, and four of 6, in three bytes.
struct CodePacking {
  int bits = 8;

  /// Codes, and bytes, of a group.
  constexpr int64_t getCodes() const { return std::lcm(bits, 8) / bits; }
  constexpr int64_t getBytes() const { return std::lcm(bits, 8) / 8; }
  /// Whether codes share bytes.
  constexpr bool isPacked() const { return bits < 8; }
  /// The groups that so many codes take.
  constexpr int64_t getGroups(int64_t codes) const {
    return (codes + getCodes() - 1) / getCodes();
  }
  /// The bytes that they take.
  constexpr int64_t getBytesOf(int64_t codes) const {
    return getGroups(codes) * getBytes();
  }
  /// Whether they leave no group incomplete.
  constexpr bool isWhole(int64_t codes) const {
    return codes % getCodes() == 0;
  }
  /// The bits of one code.
  constexpr uint64_t getMask() const { return (uint64_t(1) << bits) - 1; }
};

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
  constexpr CodePacking getPacking() const { return {getBits()}; }
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

// An element of a type of arguments is a group of codes.
#define FP8_DTYPE(NAME, FILE, CODE, BITS, LANES, ...)                          \
  inline constexpr int kBitsOf##NAME = BITS, kLanesOf##NAME = LANES;
#include "fp8/Formats.def"
#define FP8_CODE_FORMAT(NAME, TEXT, TYPE, MLIR, DTYPE, ...)                    \
  static_assert(kBitsOf##DTYPE == k##NAME.getBits() &&                         \
                    kLanesOf##DTYPE == k##NAME.getPacking().getCodes(),        \
                "expected elements to be groups of codes");
#define FP8_FORMAT(...)
#include "fp8/Formats.def"

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
