//===- Tensor.h - Tensors that a caller has ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8c's C interface; Compiler.h says what holds for all of it.
//
// The structs are DLPack's, DLTensor and DLManagedTensor, field by field
// (https://github.com/dmlc/dlpack, include/dlpack/dlpack.h): a pointer to what
// PyTorch, JAX, NumPy or CuPy hand out is a pointer to these, and nothing is
// copied.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_C_TENSOR_H
#define FP8_C_TENSOR_H

#include "fp8/Runtime/Status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Where memory is, as DLDeviceType has it.
enum {
  FP8C_CPU = 1,
  FP8C_CUDA = 2,
  FP8C_CUDA_HOST = 3,    /* of the host, known to CUDA */
  FP8C_CUDA_MANAGED = 13 /* of the host and all devices */
};

typedef struct fp8c_device {
  int32_t type;
  int32_t index; /* counts from 0; 0 but for FP8C_CUDA */
} fp8c_device;

/// What an element is, as DLDataTypeCode has it.
enum {
  FP8C_INT = 0,
  FP8C_UINT = 1,
  FP8C_FLOAT = 2,
  FP8C_BFLOAT = 4,
  FP8C_BOOL = 6,
  FP8C_FLOAT8_E4M3FN = 10,
  FP8C_FLOAT8_E5M2 = 12,
  FP8C_FLOAT8_E8M0FNU = 14,
  FP8C_FLOAT4_E2M1FN = 17
};

typedef struct fp8c_dtype {
  uint8_t code;
  uint8_t bits;   /* of a lane */
  uint16_t lanes; /* of an element: 1, or 2 codes of E2M1 in a byte */
} fp8c_dtype;

/// The type of that name, one of those in a fp8rt_program_value: F64, F32, F16,
/// BF16, F8_E4M3, F8_E5M2, F8_E8M0, F4x2, I64, I32, I16, I8, U8, BOOL. An
/// element of F4x2 is a byte of two codes of E2M1, the first in the lower half,
/// so that the last size is half the number of codes; U8 is taken for it, too.
/// Errors:
/// FP8RT_ERROR_NOT_FOUND; FP8RT_ERROR_INVALID_ARGUMENT for null.
fp8rt_status fp8c_dtype_from_name(const char *name, fp8c_dtype *dtype);

/// The inverse; null for another type. A static string.
const char *fp8c_dtype_get_name(fp8c_dtype dtype);

/// A tensor in memory that somebody else owns. A scalar has rank 0.
typedef struct fp8c_tensor {
  void *data; /* on a device: an address there */
  fp8c_device device;
  int32_t rank;
  fp8c_dtype dtype;
  int64_t *sizes;       /* `rank` of them; null for rank 0 */
  int64_t *strides;     /* in elements; null for row-major order, no gaps */
  uint64_t byte_offset; /* from `data` to the first element */
} fp8c_tensor;

/// A tensor in row-major order. `sizes` stays the caller's, and where it is.
static inline fp8c_tensor fp8c_make_tensor(void *data, fp8c_device device,
                                           fp8c_dtype dtype, int32_t rank,
                                           int64_t *sizes) {
  fp8c_tensor tensor = {data, device, rank, dtype, sizes, NULL, 0};
  return tensor;
}

/// A tensor that owns its memory, and this struct too.
typedef struct fp8c_managed_tensor {
  fp8c_tensor tensor;
  void *manager; /* the owner's */
  /* Frees all. To be called once, from any thread; may be null in tensors of
     others, which then need no freeing. */
  void (*deleter)(struct fp8c_managed_tensor *self);
} fp8c_managed_tensor;

/// Calls the deleter. Null is allowed.
void fp8c_managed_tensor_destroy(fp8c_managed_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif // FP8_C_TENSOR_H
