//===- MatmulAccumulation.h - How a kernel adds up products -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_MATMUL_MATMULACCUMULATION_H
#define FP8_KERNELS_MATMUL_MATMULACCUMULATION_H

#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/TensorCoreAccumulation.h"

namespace mlir::fp8 {

/// How the kernel that was selected for `op`, or for its group, adds up, as its
/// architecture says; nothing without a kernel.
std::optional<TensorCoreAccumulation> getAccumulationOfKernel(Operation *op);

} // namespace mlir::fp8

#endif // FP8_KERNELS_MATMUL_MATMULACCUMULATION_H
