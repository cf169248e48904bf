//===- Measure.h - Times of kernels -----------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TUNING_MEASURE_H
#define FP8_LIB_TUNING_MEASURE_H

#include "Candidates.h"
#include "GPU.h"

namespace mlir::fp8 {

/// Median microseconds of one launch of each candidate. Each of the rounds
/// times all of them, so that all see the same clocks; of those that are far
/// behind at first, it is the time of their first launches.
llvm::Expected<SmallVector<double>> measure(const TunedKernel &tuned,
                                            const Candidates &candidates,
                                            int64_t rounds, GPU &gpu);

} // namespace mlir::fp8

#endif // FP8_LIB_TUNING_MEASURE_H
