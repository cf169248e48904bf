//===- KernelModule.h - Where a program's kernels are -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_KERNELMODULE_H
#define FP8_KERNELS_KERNELMODULE_H

#include "fp8/Kernels/Architecture.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::fp8 {

/// The one gpu.module of a program, made where there is none yet.
gpu::GPUModuleOp getKernelModule(ModuleOp module);

/// "fp8_matmul_sm90a_e4m3_..._128x256_s4c2": what a kernel computes, for which
/// chip, and how it is built.
std::string getKernelName(const KernelSpec &spec,
                          const KernelGenerator &generator,
                          KernelConfigAttrInterface config,
                          GPUTargetAttr target);

} // namespace mlir::fp8

#endif // FP8_KERNELS_KERNELMODULE_H
