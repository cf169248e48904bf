//===- SM120.h - Small Blackwell GPUs ---------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM120_SM120_H
#define FP8_LIB_KERNELS_SM120_SM120_H

namespace mlir::fp8 {

/// Registers the architectures of the chips sm_120a and sm_121a.
void registerSM120();

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_SM120_SM120_H
