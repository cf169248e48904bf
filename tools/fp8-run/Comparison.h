//===- Comparison.h - Results of two targets --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_COMPARISON_H
#define FP8_TOOLS_FP8RUN_COMPARISON_H

#include "HostTensor.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fp8 {

/// Prints, for each result, the largest difference from the reference as a
/// share of the reference's largest magnitude. An error if one is beyond
/// `tolerance`, or if one has a NaN where the other has none.
llvm::Error compareResults(ArrayRef<HostTensor> results,
                           ArrayRef<HostTensor> references, double tolerance,
                           llvm::raw_ostream &os);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_COMPARISON_H
