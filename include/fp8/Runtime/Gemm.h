//===- Gemm.h - The matrix product compiled code calls ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The batched f32 matrix product that --fp8-convert-gemms-to-runtime calls.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_GEMM_H
#define FP8_RUNTIME_GEMM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>> as MLIR's C interface
/// passes it. Element (i, j, k) is data[offset + i * strides[0] +
/// j * strides[1] + k * strides[2]]; `allocated` is not used.
typedef struct fp8rt_memref3d_f32 {
  float *allocated;
  float *data;
  int64_t offset;
  int64_t sizes[3];
  int64_t strides[3];
} fp8rt_memref3d_f32;

/// C[i] += A[i] * transpose(B[i]) for every i of the batch: A is batch x M x K,
/// B is batch x N x K, C is batch x M x N; the sizes are taken from `c`, and K
/// from `a`.
///
/// Any strides from 0 up will do for A and B, so that a transposition or a
/// broadcast (stride 0, of the batch too) costs no copy; a copy is made only of
/// a matrix neither of whose strides is 1. The elements of C are distinct and
/// none of them lies in A or B. Sizes of 0 are allowed; with K = 0, C stays.
///
/// Accumulates in f32, in an order that depends on the machine and on the
/// number of threads; NaN and Inf propagate as in IEEE 754. Uses all cores.
/// Thread-safe. Cannot fail: without memory for a copy it is only slow.
void _mlir_ciface_fp8rt_gemm_f32(const fp8rt_memref3d_f32 *a,
                                 const fp8rt_memref3d_f32 *b,
                                 fp8rt_memref3d_f32 *c);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_GEMM_H
