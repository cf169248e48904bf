//===- TransposeGenerator.h - Builds transposing kernels --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSEGENERATOR_H
#define FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSEGENERATOR_H

#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8 {

/// For any GPU of compute capability 9.0 or more: all that it asks for beyond
/// loads and stores is that a kernel may begin before the last has ended.
std::unique_ptr<KernelGenerator> createTransposeGenerator();

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSEGENERATOR_H
