//===- ScaledGemms.h - Products with factors as calls -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_GEMMSTORUNTIME_SCALEDGEMMS_H
#define FP8_LIB_CONVERSION_GEMMSTORUNTIME_SCALEDGEMMS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {

/// Sums of products with their factors, as tensor cores multiply them, become
/// calls of the runtime.
void populateScaledGemmPatterns(RewritePatternSet &patterns);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_GEMMSTORUNTIME_SCALEDGEMMS_H
