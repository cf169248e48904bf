//===- LaunchRules.h - What a launch may be ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Not part of libfp8rt's C interface: C++ without MLIR, for the compiler, whose
// #fp8_gpu.launch is verified and written by these rules, and for the runtime,
// which reads it (fp8/Runtime/Kernel.h) and makes tensor maps.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_LAUNCHRULES_H
#define FP8_RUNTIME_LAUNCHRULES_H

#include "fp8/Runtime/Kernel.h"
#include "fp8/Runtime/TensorMap.h"

#include <cstddef>
#include <cstdint>

namespace fp8rt::launch {

/// That of the description in JSON.
inline constexpr int64_t kVersion = 2;

inline constexpr int64_t kMaxRank = FP8RT_KERNEL_MAX_RANK;
/// Bytes, a power of two.
inline constexpr int64_t kMaxAlignment = 4096;
/// Threads of a block, and blocks of a cluster.
inline constexpr int64_t kMaxBlock = 1024;
inline constexpr int64_t kMaxCluster = 16;
inline constexpr int64_t kMaxSharedBytes = INT32_MAX;
/// Blocks of a multiprocessor, for persistent kernels.
inline constexpr int64_t kMaxResident = 64;
inline constexpr int64_t kMaxGridRank = 3;

/// What elements of an argument may be; those that are no floats come first.
struct ElementType {
  const char *name;
  int64_t bytes;
  int32_t mapType;
};
inline constexpr ElementType kElementTypes[] = {
    {"u8", 1, FP8RT_TENSOR_MAP_U8},     {"u16", 2, FP8RT_TENSOR_MAP_U16},
    {"u32", 4, FP8RT_TENSOR_MAP_U32},   {"u64", 8, FP8RT_TENSOR_MAP_U64},
    {"f16", 2, FP8RT_TENSOR_MAP_F16},   {"f32", 4, FP8RT_TENSOR_MAP_F32},
    {"bf16", 2, FP8RT_TENSOR_MAP_BF16},
};

//===----------------------------------------------------------------------===//
// Expressions, in postfix order
//===----------------------------------------------------------------------===//

/// Numbers that wait for an operator.
inline constexpr size_t kMaxOperands = 16;

/// The operators; the last three divide by a positive constant.
enum class Operator { Add, Multiply, FloorDiv, CeilDiv, Mod };
inline constexpr const char *kOperators[] = {"+", "*", "floordiv", "ceildiv",
                                             "mod"};

constexpr const char *getName(Operator op) {
  return kOperators[static_cast<size_t>(op)];
}
constexpr bool isDivision(Operator op) { return op >= Operator::FloorDiv; }

//===----------------------------------------------------------------------===//
// Tensor maps (CUDA driver API, cuTensorMapEncodeTiled)
//===----------------------------------------------------------------------===//

inline constexpr int64_t kMaxMapRank = 5;
/// Elements of a box along a dimension.
inline constexpr int64_t kMaxBox = 256;
/// What addresses, strides and a box's rows are multiples of, in bytes.
inline constexpr int64_t kMapBytes = 16;

/// Bytes, in the order of FP8RT_TENSOR_MAP_SWIZZLE_NONE, ...
inline constexpr int64_t kSwizzles[] = {0, 32, 64, 128};
/// Bytes, in the order of FP8RT_TENSOR_MAP_L2_NONE, ...
inline constexpr int64_t kL2Sizes[] = {0, 64, 128, 256};

/// The number of `bytes` in one of these; nothing is -1.
template <size_t N>
constexpr int32_t findCode(const int64_t (&known)[N], int64_t bytes) {
  for (size_t i = 0; i < N; ++i)
    if (known[i] == bytes)
      return static_cast<int32_t>(i);
  return -1;
}

} // namespace fp8rt::launch

#endif // FP8_RUNTIME_LAUNCHRULES_H
