//===- Passes.h - Conversions out of the fp8 dialect ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_CONVERSION_PASSES_H
#define FP8_CONVERSION_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::fp8 {

#define GEN_PASS_DECL
#include "fp8/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp8/Conversion/Passes.h.inc"

/// Collects the patterns of --fp8-expand-float-casts.
void populateExpandFloatCastsPatterns(RewritePatternSet &patterns);

/// Collects the patterns of --fp8-convert-gemms-to-runtime.
void populateGemmsToRuntimePatterns(RewritePatternSet &patterns,
                                    bool inWarps = false);

} // namespace mlir::fp8

#endif // FP8_CONVERSION_PASSES_H
