//===- Builtins.cpp - Conversions that compilers call ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For `fptrunc` to bfloat LLVM emits calls that neither glibc nor the libgcc of
// Debian 12 answers. Round to nearest, ties to even, once; NaNs stay NaNs.
//
// A bfloat returns in the low half of the register of a float, on x86-64 as on
// AArch64; saying so in C++ keeps us independent of the compiler's __bf16.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstring>

static uint32_t getBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static float makeFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

extern "C" float __truncsfbf2(float value) {
  uint32_t bits = getBits(value);
  if (value != value)
    return makeFloat(bits >> 16 | 0x40);
  return makeFloat((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

extern "C" float __truncdfbf2(double value) {
  // The first of two roundings must not make a tie or break one: round to odd.
  float rounded = static_cast<float>(value);
  uint32_t bits = getBits(rounded);
  bool exact = static_cast<double>(rounded) == value || value != value;
  if (!exact && (bits & 1) == 0) {
    bool tooLarge = (static_cast<double>(rounded) > value) == (value > 0);
    rounded = makeFloat(tooLarge ? bits - 1 : bits + 1);
  }
  return __truncsfbf2(rounded);
}
