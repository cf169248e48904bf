//===- MatmulGenerator.h - Matmul kernels by mma.sync -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_MATMULGENERATOR_H
#define FP8_LIB_KERNELS_MMA_MATMULGENERATOR_H

#include "../Matmul/MatmulFunction.h"
#include "MatmulLayout.h"
#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8::mma {

/// How products of 8-bit types are added up: as Ada does, as Blackwell does, or
/// as f16, which they become.
enum class ProductsOfCodes { Narrow, Wide, Expanded };

/// What selects and builds matmul kernels by mma.sync.
std::unique_ptr<KernelGenerator>
createMatmulGenerator(ProductsOfCodes products);

/// The configs worth trying, the usual one first.
SmallVector<GemmConfigAttr> getMatmulCandidates(const MatmulSpec &spec,
                                                GPUTargetAttr target,
                                                bool exhaustive);

/// Clocks, computed and not measured, of a spec whose extents are known.
double getMatmulCost(const MatmulSpec &spec, GemmConfigAttr config,
                     GPUTargetAttr target);

/// What a kernel's function is like, and its body.
MatmulForm getMatmulForm(GemmConfigAttr config, const MatmulLayout &layout);
void buildMatmul(MatmulFunction &kernel, const MatmulSpec &spec,
                 GemmConfigAttr config, const MatmulLayout &layout,
                 GPUTargetAttr target);

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_MATMULGENERATOR_H
