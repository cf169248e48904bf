//===- MatmulGenerator.h - Matmul kernels by mma.sync -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_MATMULGENERATOR_H
#define FP8_LIB_KERNELS_MMA_MATMULGENERATOR_H

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

/// Builds the kernel; fails, with the reason, if it cannot.
FailureOr<LLVM::LLVMFuncOp> buildMatmul(OpBuilder &builder, Location loc,
                                        const MatmulSpec &spec,
                                        GemmConfigAttr config,
                                        GPUTargetAttr target, StringRef name,
                                        std::string &reason);

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_MATMULGENERATOR_H
