//===- MatmulGenerator.h - Matmul kernels for Blackwell ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_MATMULGENERATOR_H
#define FP8_LIB_KERNELS_SM100_MATMULGENERATOR_H

#include "../Matmul/MatmulFunction.h"
#include "MatmulLayout.h"
#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8::sm100 {

std::unique_ptr<KernelGenerator> createMatmulGenerator();

/// The configs of the table that fit; `exhaustive` adds other groups of tiles,
/// buffers and warpgroups.
SmallVector<GemmConfigAttr> getMatmulCandidates(const MatmulSpec &spec,
                                                GPUTargetAttr target,
                                                bool exhaustive);

/// Clocks that the kernel takes by the chip's rates, for a spec whose extents
/// are known. Computed, not measured.
double getMatmulCost(const MatmulSpec &spec, GemmConfigAttr config,
                     GPUTargetAttr target);

/// What promotion costs against factors that the tensor core multiplies; empty
/// without.
std::string describePromotion(const MatmulSpec &spec, GemmConfigAttr config,
                              GPUTargetAttr target);

/// What a kernel's function is like, and its body.
MatmulForm getMatmulForm(GemmConfigAttr config, const MatmulLayout &layout);
void buildMatmul(MatmulFunction &kernel, const MatmulSpec &spec,
                 GemmConfigAttr config, const MatmulLayout &layout,
                 GPUTargetAttr target);

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_MATMULGENERATOR_H
