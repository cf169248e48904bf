//===- StructSize.h - Structs of callers of other versions ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A caller's struct may be shorter than ours, or longer: it says so. Whoever
// was compiled before structs did has something else in that place.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STRUCTSIZE_H
#define FP8_LIB_RUNTIME_STRUCTSIZE_H

#include "StatusDetail.h"

#include "fp8/Runtime/Device.h"
#include "fp8/Runtime/Module.h"
#include "fp8/Runtime/Profile.h"
#include "fp8/Runtime/ScalingState.h"
#include "fp8/Runtime/Stats.h"
#include "fp8/Runtime/TensorMap.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace fp8rt::detail {

/// The bytes of a struct in the first version that has it with its size. They
/// never change: new fields come behind these.
template <typename T>
inline constexpr size_t kFirstSize = 0;
template <>
inline constexpr size_t kFirstSize<fp8rt_stats> = 64;
template <>
inline constexpr size_t kFirstSize<fp8rt_state_rows> = 120;
template <>
inline constexpr size_t kFirstSize<fp8rt_state_info> = 56;
template <>
inline constexpr size_t kFirstSize<fp8rt_state_slot> = 40;
template <>
inline constexpr size_t kFirstSize<fp8rt_state_statistics> = 56;
template <>
inline constexpr size_t kFirstSize<fp8rt_load_report> = 48;
template <>
inline constexpr size_t kFirstSize<fp8rt_device_info> = 184;
template <>
inline constexpr size_t kFirstSize<fp8rt_function_info> = 32;
template <>
inline constexpr size_t kFirstSize<fp8rt_launch_config> = 48;
template <>
inline constexpr size_t kFirstSize<fp8rt_tensor_map_desc> = 136;
template <>
inline constexpr size_t kFirstSize<fp8rt_profile_entry> = 56;

/// No struct gets that large: a greater number is no size.
inline constexpr size_t kMaxStructSize = 4096;

/// Reports what a caller gave in place of `name`: null, or a struct whose size
/// is said to be `size`.
template <typename Size>
fp8rt_status failStruct(const char *name, size_t expected,
                        const Size *size) noexcept {
  // Without a string: it is called outside of guard().
  char message[256];
  if (!size)
    std::snprintf(message, sizeof(message), "expected %s, but got null", name);
  else
    std::snprintf(message, sizeof(message),
                  "expected %s->struct_size to be %zu, the size of the struct, "
                  "but got %llu; a caller that does not set it has older "
                  "headers: compile it again",
                  name, expected, static_cast<unsigned long long>(*size));
  return fail(FP8RT_ERROR_INVALID_ARGUMENT, message);
}

/// FP8RT_OK if `name` is given, with a size; else that has been reported.
template <typename T>
fp8rt_status checkStruct(const char *name, const T *given) {
  static_assert(kFirstSize<T> != 0 && kFirstSize<T> <= sizeof(T));
  if (given && given->struct_size >= kFirstSize<T> &&
      given->struct_size <= kMaxStructSize)
    return FP8RT_OK;
  return failStruct(name, sizeof(T), given ? &given->struct_size : nullptr);
}

/// Gives the caller what it knows of `value`. The struct has been checked.
template <typename T>
void giveStruct(T *to, const T &value) {
  auto size = to->struct_size;
  std::memcpy(to, &value, std::min<size_t>(size, sizeof(T)));
  to->struct_size = size;
}

/// What the caller has given, with zeros for what it does not know; `storage`
/// is for that. The struct has been checked.
template <typename T>
const T &takeStruct(const T *from, T &storage) {
  if (from->struct_size >= sizeof(T))
    return *from;
  std::memset(&storage, 0, sizeof(T));
  std::memcpy(&storage, from, from->struct_size);
  storage.struct_size = sizeof(T);
  return storage;
}

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_STRUCTSIZE_H
