//===- SM100.h - Blackwell GPUs ---------------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_SM100_H
#define FP8_LIB_KERNELS_SM100_SM100_H

namespace mlir::fp8 {

/// Registers the architecture of NVIDIA's Blackwell GPUs for data centres.
void registerSM100();

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_SM100_SM100_H
