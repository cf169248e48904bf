//===- Layout.h - ABI.def as a number ---------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A hash of all that ABI.def defines, and what it was in each version.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_ABI_LAYOUT_H
#define FP8_RUNTIME_ABI_LAYOUT_H

#include <cstdint>
#include <string_view>

namespace fp8rt::abi {

// clang-format off
/// The entries of ABI.def, without comments and with single spaces.
inline constexpr std::string_view kLayoutText = ""
#define FP8RT_TYPE(NAME, TYPE) "type " #NAME " " #TYPE "\n"
#define FP8RT_OPAQUE(NAME) "opaque " #NAME "\n"
#define FP8RT_STRUCT(NAME, ALIGNMENT) "struct " #NAME " " #ALIGNMENT "\n"
#define FP8RT_FIELD(TYPE, NAME) "field " #TYPE " " #NAME "\n"
#define FP8RT_MEMREF(NAME, ELEMENT, RANK)                                      \
  "memref " #NAME " " #ELEMENT " " #RANK "\n"
#define FP8RT_FUNCTION(RESULT, NAME, PARAMETERS)                               \
  "function " #RESULT " " #NAME " " #PARAMETERS "\n"
#include "fp8/Runtime/ABI.def"
    ;
// clang-format on

/// The 32-bit FNV-1a of that text.
constexpr uint32_t getLayoutHash() {
  uint32_t hash = 2166136261u;
  for (char character : kLayoutText)
    hash = (hash ^ static_cast<unsigned char>(character)) * 16777619u;
  return hash;
}

/// The same as it was in a version; 0 if there is no such version.
constexpr uint32_t getLayoutHash(uint32_t version) {
#define FP8RT_LAYOUT(MAJOR, MINOR, HASH)                                       \
  if (version == MAJOR * 1000 + MINOR)                                         \
    return HASH;
#include "fp8/Runtime/ABI/Versions.def"
  return 0;
}

} // namespace fp8rt::abi

#endif // FP8_RUNTIME_ABI_LAYOUT_H
