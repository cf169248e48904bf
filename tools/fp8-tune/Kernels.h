//===- Kernels.h - What is to be tuned --------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8TUNE_KERNELS_H
#define FP8_TOOLS_FP8TUNE_KERNELS_H

#include "Options.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/KernelOpInterface.h"

namespace mlir::fp8 {

/// An operation of a program, what its kernel computes, and who builds it.
struct TunedKernel {
  KernelOpInterface op;
  std::unique_ptr<KernelSpec> spec;
  const KernelGenerator *generator;
  GPUTargetAttr target;
};

/// A program of the matmuls that the command line describes.
std::string getProgram(const ShapeOptions &shapes);

/// The operations of a program with a target, at the end of `fusion`, for which
/// a table can have an entry, each once. Remarks say why others are left out.
SmallVector<TunedKernel> collectKernels(ModuleOp module);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8TUNE_KERNELS_H
