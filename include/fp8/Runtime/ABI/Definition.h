//===- Definition.h - ABI.def as C++ types ----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For those who build code that calls the runtime; they include MLIR.h or
// LLVM.h beside this file. A function of ABI.def is a constant, and so is a
// field:
//
//   abi::fp8rt_context_alloc                  its name, and its type in C
//   abi::Struct<fp8rt_launch_config>::grid    its place, and its type in C
//
// so that a misspelt name, a field of another struct and a missing argument do
// not compile. Knows no LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_ABI_DEFINITION_H
#define FP8_RUNTIME_ABI_DEFINITION_H

#include "fp8/Runtime/Context.h"
#include "fp8/Runtime/DeviceState.h"
#include "fp8/Runtime/Gemm.h"
#include "fp8/Runtime/GpuWrappers.h"
#include "fp8/Runtime/Group.h"
#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/Parallel.h"
#include "fp8/Runtime/Profile.h"
#include "fp8/Runtime/Program.h"
#include "fp8/Runtime/Stats.h"
#include "fp8/Runtime/TensorMap.h"

#include <type_traits>

namespace fp8rt::abi {

// The types of ABI.def that C has other names for.
using u8 = uint8_t;
using i32 = int32_t;
using u32 = uint32_t;
using i64 = int64_t;
using u64 = uint64_t;
using f32 = float;
using f64 = double;
using usize = size_t;
using str = const char *;

/// A field of type T of the struct S, or an element of one.
template <class S, class T>
struct Field {
  unsigned index;
  /// An element of an array; -1 for the field as a whole.
  int element = -1;

  constexpr Field<S, std::remove_extent_t<T>> operator[](unsigned i) const {
    static_assert(std::is_array_v<T>, "expected a field that is an array");
    return {index, static_cast<int>(i)};
  }
};

/// The fields of S, by name.
template <class S>
struct Struct;

/// In the order of memory. The first type is void, and no field's.
template <class... Ts>
struct Fields {};

/// What S is made of: its `alignment` in bytes, the types of its `Fields`.
template <class S>
struct Layout;

/// The `Element` and the `rank` of the memref that S describes, if it does.
template <class S>
struct MemRef;

/// A function of the runtime; F is its type in C.
template <class F>
struct Function {
  const char *name;
};

//===----------------------------------------------------------------------===//
// From ABI.def
//===----------------------------------------------------------------------===//

// clang-format off
namespace detail {
#define FP8RT_STRUCT(NAME, ALIGNMENT) enum class IndexIn_##NAME : unsigned {
#define FP8RT_FIELD(TYPE, NAME) NAME,
#define FP8RT_END() };
#include "fp8/Runtime/ABI.def"
} // namespace detail

#define FP8RT_STRUCT(NAME, ALIGNMENT)                                          \
  template <>                                                                  \
  struct Struct<::NAME> {                                                      \
    using Self = ::NAME;                                                       \
    using Index = detail::IndexIn_##NAME;
#define FP8RT_FIELD(TYPE, NAME)                                                \
    static constexpr Field<Self, TYPE> NAME{static_cast<unsigned>(Index::NAME)};
#define FP8RT_END() };
#include "fp8/Runtime/ABI.def"

#define FP8RT_STRUCT(NAME, ALIGNMENT)                                          \
  template <>                                                                  \
  struct Layout<::NAME> {                                                      \
    static constexpr unsigned alignment = ALIGNMENT;                           \
    using Fields = abi::Fields<void
#define FP8RT_FIELD(TYPE, NAME) , TYPE
#define FP8RT_END() >; };
#include "fp8/Runtime/ABI.def"

#define FP8RT_MEMREF(NAME, ELEMENT, RANK)                                      \
  template <>                                                                  \
  struct MemRef<::NAME> {                                                      \
    using Element = ELEMENT;                                                   \
    static constexpr unsigned rank = RANK;                                     \
  };
#include "fp8/Runtime/ABI.def"

#define FP8RT_FUNCTION(RESULT, NAME, PARAMETERS)                               \
  inline constexpr Function<RESULT PARAMETERS> NAME{#NAME};
#include "fp8/Runtime/ABI.def"
// clang-format on

} // namespace fp8rt::abi

#endif // FP8_RUNTIME_ABI_DEFINITION_H
