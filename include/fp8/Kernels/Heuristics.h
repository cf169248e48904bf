//===- Heuristics.h - Choice of kernel configs ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_HEURISTICS_H
#define FP8_KERNELS_HEURISTICS_H

#include "fp8/Kernels/MatmulSpec.h"

namespace mlir::fp8 {

/// The configs that the selection chooses from for `spec` on sm_90a, best first
/// where nothing is known of the shape; each fits.
SmallVector<GemmConfigAttr> getMatmulCandidatesSM90(MLIRContext *context,
                                                    const MatmulSpec &spec);

/// The config for `spec` on sm_90a; says why if there is none.
FailureOr<GemmConfigAttr> selectMatmulConfigSM90(MLIRContext *context,
                                                 const MatmulSpec &spec,
                                                 std::string &reason);

} // namespace mlir::fp8

#endif // FP8_KERNELS_HEURISTICS_H
