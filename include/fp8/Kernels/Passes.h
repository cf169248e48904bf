//===- Passes.h - Selection and generation of kernels -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_PASSES_H
#define FP8_KERNELS_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fp8 {

#define GEN_PASS_DECL
#include "fp8/Kernels/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp8/Kernels/Passes.h.inc"

} // namespace mlir::fp8

#endif // FP8_KERNELS_PASSES_H
