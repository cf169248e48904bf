//===- TensorMap.h - Descriptors of tensors for the TMA ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface; Device.h says what holds for all functions.
//
// A tensor map tells the tensor memory accelerator of sm_90 and later where a
// tensor lies and which box of it one copy moves (PTX ISA, "Tensors"). Kernels
// take it by value, as a __grid_constant__ parameter.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_TENSORMAP_H
#define FP8_RUNTIME_TENSORMAP_H

#include "fp8/Runtime/Device.h"

#ifdef __cplusplus
#define FP8RT_ALIGNAS(n) alignas(n)
extern "C" {
#else
#define FP8RT_ALIGNAS(n) _Alignas(n)
#endif

/// A CUtensorMap.
typedef struct fp8rt_tensor_map {
  FP8RT_ALIGNAS(64) uint64_t opaque[16];
} fp8rt_tensor_map;

/// The numbers are those of CUtensorMapDataType. FP8 and E8M0 move as U8.
enum {
  FP8RT_TENSOR_MAP_U8 = 0,
  FP8RT_TENSOR_MAP_U16 = 1,
  FP8RT_TENSOR_MAP_U32 = 2,
  FP8RT_TENSOR_MAP_I32 = 3,
  FP8RT_TENSOR_MAP_U64 = 4,
  FP8RT_TENSOR_MAP_I64 = 5,
  FP8RT_TENSOR_MAP_F16 = 6,
  FP8RT_TENSOR_MAP_F32 = 7,
  FP8RT_TENSOR_MAP_F64 = 8,
  FP8RT_TENSOR_MAP_BF16 = 9
};

/// How rows of a box are permuted in shared memory, by the bytes of a row.
enum {
  FP8RT_TENSOR_MAP_SWIZZLE_NONE = 0,
  FP8RT_TENSOR_MAP_SWIZZLE_32B = 1,
  FP8RT_TENSOR_MAP_SWIZZLE_64B = 2,
  FP8RT_TENSOR_MAP_SWIZZLE_128B = 3
};

/// What the L2 cache fetches at a time.
enum {
  FP8RT_TENSOR_MAP_L2_NONE = 0,
  FP8RT_TENSOR_MAP_L2_64B = 1,
  FP8RT_TENSOR_MAP_L2_128B = 2,
  FP8RT_TENSOR_MAP_L2_256B = 3
};

/// A tensor and its box. Dimensions count from the innermost, whose elements
/// lie together; `strides[0]` is not used. What a box takes from beyond the
/// sizes is 0, and is not stored.
typedef struct fp8rt_tensor_map_desc {
  FP8RT_STRUCT_SIZE(uint64_t, fp8rt_tensor_map_desc)
  const void *address; /* a multiple of 16 */
  int32_t type;        /* FP8RT_TENSOR_MAP_U8, ... */
  int32_t rank;        /* 1 to 5 */
  uint64_t sizes[5];   /* in elements, 1 to 2^32 */
  uint64_t strides[5]; /* in bytes, multiples of 16, below 2^40 */
  uint32_t box[5]; /* in elements, 1 to 256; box[0] in bytes is a multiple of
                      16, and no more than the swizzle */
  int32_t swizzle; /* FP8RT_TENSOR_MAP_SWIZZLE_NONE, ... */
  int32_t l2_promotion; /* FP8RT_TENSOR_MAP_L2_NONE, ... */
  int32_t reserved;     /* not looked at */
} fp8rt_tensor_map_desc;

/// Copies the map of `desc` to `*map`. It is made at the first call, and found
/// again by all that `desc` says; the 1,024 latest or so are kept. A map speaks
/// of an address, not of what lies there: it stays right when the memory is
/// used for something else. Errors: FP8RT_ERROR_INVALID_ARGUMENT, with a
/// message that names the field; FP8RT_ERROR_UNSUPPORTED_ARCH before sm_90.
fp8rt_status fp8rt_tensor_map_get(int32_t device,
                                  const fp8rt_tensor_map_desc *desc,
                                  fp8rt_tensor_map *map);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_TENSORMAP_H
