//===- FP8GPUDialect.h - The fp8_gpu dialect --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_IR_FP8GPUDIALECT_H
#define FP8_GPU_IR_FP8GPUDIALECT_H

#include "mlir/IR/Dialect.h"

#include "fp8/GPU/IR/FP8GPUDialect.h.inc"

namespace mlir::fp8 {

/// Names of the discardable attributes; see the dialect's description.
inline constexpr llvm::StringLiteral kTargetAttrName = "fp8_gpu.target";
inline constexpr llvm::StringLiteral kConfigAttrName = "fp8_gpu.config";
inline constexpr llvm::StringLiteral kFewRowsAttrName = "fp8_gpu.few_rows";
inline constexpr llvm::StringLiteral kRowsAttrName = "fp8_gpu.rows";
inline constexpr llvm::StringLiteral kKernelAttrName = "fp8_gpu.kernel";
inline constexpr llvm::StringLiteral kLaunchAttrName = "fp8_gpu.launch";
inline constexpr llvm::StringLiteral kMathAttrName = "fp8_gpu.math";

/// The one gpu.module of a program, whoever makes its kernels.
inline constexpr llvm::StringLiteral kKernelModuleName = "fp8_kernels";

} // namespace mlir::fp8

#endif // FP8_GPU_IR_FP8GPUDIALECT_H
