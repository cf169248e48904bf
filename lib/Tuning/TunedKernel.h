//===- TunedKernel.h - What is to be tuned ----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TUNING_TUNEDKERNEL_H
#define FP8_LIB_TUNING_TUNEDKERNEL_H

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

} // namespace mlir::fp8

#endif // FP8_LIB_TUNING_TUNEDKERNEL_H
