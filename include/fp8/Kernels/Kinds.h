//===- Kinds.h - The kinds of kernels ---------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_KINDS_H
#define FP8_KERNELS_KINDS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::fp8 {

/// fp8.matmul has kernels of the kind "matmul".
void registerMatmulKernels(DialectRegistry &registry);

/// fp8.attention has kernels of the kind "attention", fp8.attention_backward
/// those of "attention_backward".
void registerAttentionKernels(DialectRegistry &registry);

/// fp8.fusion has kernels of the kind "fusion".
void registerFusionKernels(DialectRegistry &registry);

/// fp8.transpose and linalg.transpose have kernels of the kind "transpose".
void registerTransposeKernels(DialectRegistry &registry);

} // namespace mlir::fp8

#endif // FP8_KERNELS_KINDS_H
