//===- MatmulSignature.h - What matmul kernels take -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_MATMULSIGNATURE_H
#define FP8_LIB_KERNELS_SM90_MATMULSIGNATURE_H

#include "../Blocks/KernelSignature.h"
#include "MatmulLayout.h"

namespace mlir::fp8 {

/// The kernel's parameters, by the names in docs/Kernels.md, and its launch.
struct MatmulSignature {
  MatmulSignature(MLIRContext *context, const MatmulSpec &spec,
                  GemmConfigAttr config, const MatmulLayout &layout);

  KernelSignature signature;
  KernelSignature::Launch launch;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_SM90_MATMULSIGNATURE_H
