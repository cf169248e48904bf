//===- MatmulGenerator.h - Matmul kernels for Hopper ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_MATMULGENERATOR_H
#define FP8_LIB_KERNELS_SM90_MATMULGENERATOR_H

#include "../Matmul/MatmulFunction.h"
#include "MatmulLayout.h"
#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8::sm90 {

/// What selects and builds matmul kernels for Hopper GPUs.
std::unique_ptr<KernelGenerator> createMatmulGenerator();

/// The configs that seem best, best first; with `exhaustive` also those that
/// differ from these in staging, pending products, epilogue and rasterization.
SmallVector<GemmConfigAttr> getMatmulCandidates(const MatmulSpec &spec,
                                                GPUTargetAttr target,
                                                bool exhaustive);

/// The config to build with; says why if there is none.
FailureOr<GemmConfigAttr> selectMatmulConfig(const MatmulSpec &spec,
                                             GPUTargetAttr target,
                                             std::string &reason);

/// An estimate of the clocks that the matmul takes. Unknown extents count as
/// large ones.
double getMatmulCost(const MatmulSpec &spec, GemmConfigAttr config,
                     GPUTargetAttr target);

/// What a kernel's function is like, and its body.
MatmulForm getMatmulForm(GemmConfigAttr config, const MatmulLayout &layout);
void buildMatmul(MatmulFunction &kernel, const MatmulSpec &spec,
                 GemmConfigAttr config, const MatmulLayout &layout,
                 GPUTargetAttr target);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_MATMULGENERATOR_H
