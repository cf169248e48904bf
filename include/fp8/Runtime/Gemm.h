//===- Gemm.h - The matrix product compiled code calls ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The batched f32 matrix products that --fp8-convert-gemms-to-runtime calls.
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
/// B is batch x N x K, C is batch x M x N. The sizes are taken from `c`, and K
/// from `a`.
///
/// Any strides from 0 up will do for A and B, so that a transposition or a
/// broadcast (stride 0, of the batch too) costs no copy. A copy is made only of
/// a matrix neither of whose strides is 1. The elements of C are distinct and
/// none of them lies in A or B. Sizes of 0 are allowed; with K = 0, C stays.
///
/// Accumulates in f32, in an order that depends on the machine, on the sizes
/// and on the number of threads; NaN and Inf propagate as in IEEE 754. Uses all
/// cores. Thread-safe. Cannot fail: without memory for a copy it is only slow.
/// With FP8_CPU_SUMS=ordered in the environment each sum begins with C's
/// element, and the products follow one by one in the order of K, each rounded:
/// the same bits on every machine, for any sizes and layouts. It takes one
/// core.
void _mlir_ciface_fp8rt_gemm_f32(const fp8rt_memref3d_f32 *a,
                                 const fp8rt_memref3d_f32 *b,
                                 fp8rt_memref3d_f32 *c);

/// What a tensor core takes elements of an operand for:
/// FP8RT_TENSOR_CORE_E4M3, ..., with the numbers of Formats.def.
enum fp8rt_tensor_core_type {
#define FP8_TENSOR_CORE_TYPE(NAME, TEXT, TYPE, NUMBER, ...)                    \
  FP8RT_TENSOR_CORE_##NAME = NUMBER,
#include "fp8/Formats.def"
};

/// The same with the sums of an H200's tensor cores, bit by bit: C[i] + S,
/// where S is summed as a kernel of lib/Kernels/SM90 sums it (docs/Emulator.md
/// has the rule). Elements of A and B are numbers of `type_a` and `type_b`,
/// both of 8 bits or one type twice, and not of less than 8; of TF32 the lower
/// 13 bits are ignored. The program fails for a type that is none. K is walked
/// in blocks of `block_k`, a multiple of what an instruction takes (32 bytes),
/// and cut into `parts` of whole blocks, part i from i * blocks / parts on.
/// Within a part sums stay in the tensor core; or, if `promoted` is not 0, each
/// block's is added to an f32. The sums of parts are added in f32, in order.
///
/// The same on every machine, and with any number of threads. Slow: some 10^8
/// products a second and core.
void _mlir_ciface_fp8rt_gemm_tensor_core(const fp8rt_memref3d_f32 *a,
                                         const fp8rt_memref3d_f32 *b,
                                         fp8rt_memref3d_f32 *c, int32_t type_a,
                                         int32_t type_b, int32_t block_k,
                                         int32_t parts, int32_t promoted);

/// The same with the sums of Ada's instruction, as far as they are known
/// (docs/Emulator.md): kernels of lib/Kernels/Mma. Of 8-bit types it adds up
/// 16 products at a time. Since 1.1.
void _mlir_ciface_fp8rt_gemm_mma(const fp8rt_memref3d_f32 *a,
                                 const fp8rt_memref3d_f32 *b,
                                 fp8rt_memref3d_f32 *c, int32_t type_a,
                                 int32_t type_b, int32_t block_k, int32_t parts,
                                 int32_t promoted);

/// The same with the sums of Blackwell's instruction, as far as they are known
/// (docs/Emulator.md): kernels of lib/Kernels/SM100, which promote nothing.
void _mlir_ciface_fp8rt_gemm_tcgen05(const fp8rt_memref3d_f32 *a,
                                     const fp8rt_memref3d_f32 *b,
                                     fp8rt_memref3d_f32 *c, int32_t type_a,
                                     int32_t type_b, int32_t block_k,
                                     int32_t parts);

/// The same with factors, which the tensor core multiplies: of A (batch x M x K
/// / factor_k) and of B (batch x N x K / factor_k), one for `factor_k` elements
/// of K. Of 32 they are powers of two that E8M0 has, or NaN; of 16 numbers of
/// E4M3, whose sign is ignored. Elements are of 8 bits or 6, with 32, or all of
/// E2M1. K is a multiple of `factor_k`.
void _mlir_ciface_fp8rt_gemm_tcgen05_scaled(
    const fp8rt_memref3d_f32 *a, const fp8rt_memref3d_f32 *b,
    const fp8rt_memref3d_f32 *factors_a, const fp8rt_memref3d_f32 *factors_b,
    fp8rt_memref3d_f32 *c, int32_t type_a, int32_t type_b, int32_t factor_k,
    int32_t block_k, int32_t parts);

/// The same in f32 as a warp sums it (loops of GPUs that no kernel computes):
/// lane i adds the products of elements i, i + 32, ... of K, each rounded, and
/// the lanes' sums are added in pairs 16, 8, 4, 2 and 1 lanes apart.
void _mlir_ciface_fp8rt_gemm_warp(const fp8rt_memref3d_f32 *a,
                                  const fp8rt_memref3d_f32 *b,
                                  fp8rt_memref3d_f32 *c);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_GEMM_H
