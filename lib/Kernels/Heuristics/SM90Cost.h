//===- SM90Cost.h - How long a matmul takes on Hopper -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_HEURISTICS_SM90COST_H
#define FP8_LIB_KERNELS_HEURISTICS_SM90COST_H

#include "fp8/Kernels/MatmulSpec.h"

namespace mlir::fp8 {

/// An estimate of the clocks that the matmul takes with `config`, all of whose
/// extents are known. `share` is what the config's main loop reaches of the
/// tensor core's rate. Good for comparing configs, not for predicting times.
double getMatmulCostSM90(const MatmulSpec &spec, GemmConfigAttr config,
                         double share);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_HEURISTICS_SM90COST_H
