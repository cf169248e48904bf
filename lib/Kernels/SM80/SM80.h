//===- SM80.h - Ampere GPUs -------------------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM80_SM80_H
#define FP8_LIB_KERNELS_SM80_SM80_H

namespace mlir::fp8 {

/// Registers the architecture of the chip sm_80.
void registerSM80();

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_SM80_SM80_H
