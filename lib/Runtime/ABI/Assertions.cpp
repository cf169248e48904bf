//===- Assertions.cpp - The C headers are what ABI.def says ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing but static assertions: every struct of ABI.def has these fields, of
// these types, at these places and no others, and every function this type. And
// all of it together is what Versions.def says of FP8RT_VERSION.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/ABI/Definition.h"
#include "fp8/Runtime/ABI/Layout.h"

#include <cstddef>

namespace fp8rt::abi {

/// The sizes of the fields before the one of that index.
template <class... Ts>
static constexpr size_t sumSizes(Fields<void, Ts...>, size_t index) {
  size_t sum = 0, i = 0;
  ((sum += i++ < index ? sizeof(Ts) : 0), ...);
  return sum;
}

template <class... Ts>
static constexpr size_t count(Fields<void, Ts...>) {
  return sizeof...(Ts);
}

// clang-format off
#define FP8RT_TYPE(NAME, TYPE)                                                 \
  static_assert(std::is_same_v<::NAME, TYPE>,                                  \
                #NAME ": its type is not that of ABI.def");
#define FP8RT_OPAQUE(NAME)                                                     \
  static_assert(std::is_class_v<::NAME>, #NAME ": not a struct");
#define FP8RT_STRUCT(NAME, ALIGNMENT)                                          \
  namespace check_##NAME {                                                     \
  using Self = ::NAME;                                                         \
  using Fields = Layout<Self>::Fields;                                         \
  static_assert(sizeof(Self) == sumSizes(Fields(), count(Fields())),           \
                #NAME ": its size is not that of the fields in ABI.def");      \
  static_assert(alignof(Self) == ALIGNMENT,                                    \
                #NAME ": its alignment is not that of ABI.def");
#define FP8RT_FIELD(TYPE, NAME)                                                \
  static_assert(std::is_same_v<decltype(Self::NAME), TYPE>,                    \
                #NAME ": its type is not that of ABI.def");                    \
  static_assert(offsetof(Self, NAME) ==                                        \
                    sumSizes(Fields(), Struct<Self>::NAME.index),              \
                #NAME ": its place is not that of ABI.def");
#define FP8RT_END() }
#define FP8RT_FUNCTION(RESULT, NAME, PARAMETERS)                               \
  static_assert(std::is_same_v<decltype(::NAME), RESULT PARAMETERS>,           \
                #NAME ": its type is not that of ABI.def");
#include "fp8/Runtime/ABI.def"
// clang-format on

// A release is made once: whatever was compiled with it trusts that.
static_assert(getLayoutHash() == getLayoutHash(FP8RT_VERSION),
              "ABI.def changed, but not FP8RT_VERSION: raise its minor if what "
              "callers have compiled stays right, else its major, and say in "
              "Versions.def that its layout is the first of these numbers "
              "(docs/Runtime.md, Versions)");

} // namespace fp8rt::abi
