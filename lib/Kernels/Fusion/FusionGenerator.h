//===- FusionGenerator.h - Builds streaming kernels -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONGENERATOR_H
#define FP8_LIB_KERNELS_FUSION_FUSIONGENERATOR_H

#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8 {

/// The same kernels serve every architecture that converts to 8-bit floats.
std::unique_ptr<KernelGenerator> createFusionGenerator();

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSION_FUSIONGENERATOR_H
