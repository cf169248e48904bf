//===- Passes.h - Passes on kernels -----------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_TRANSFORMS_PASSES_H
#define FP8_GPU_TRANSFORMS_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::fp8 {

#define GEN_PASS_DECL
#include "fp8/GPU/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp8/GPU/Transforms/Passes.h.inc"

/// Takes the kernels of a gpu.module to the LLVM dialect, ready for PTX: those
/// that generators built as functions of the LLVM dialect, and those that were
/// outlined as gpu.func. `pm` runs on gpu.module.
void buildLowerKernelsPipeline(OpPassManager &pm);

/// Registers the above, nested under builtin.module, as --fp8-lower-kernels.
void registerKernelPipelines();

} // namespace mlir::fp8

#endif // FP8_GPU_TRANSFORMS_PASSES_H
