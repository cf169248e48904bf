//===- SM90.h - Hopper GPUs -------------------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_SM90_H
#define FP8_LIB_KERNELS_SM90_SM90_H

namespace mlir::fp8 {

/// Registers the architecture of NVIDIA's Hopper GPUs.
void registerSM90();

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_SM90_SM90_H
