//===- Patterns.h - Rewrites that others try too ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_PATTERNS_H
#define FP8_TRANSFORMS_PATTERNS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/Statistic.h"

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::fp8 {

/// Adds the patterns of fp8-fuse-casts; each match is counted.
void populateFuseCastsPatterns(RewritePatternSet &patterns,
                               llvm::Statistic &numAmaxes,
                               llvm::Statistic &numQuantizes);

/// Adds the patterns of fp8-fuse-epilogues; each match is counted.
void populateFuseEpiloguesPatterns(RewritePatternSet &patterns,
                                   llvm::Statistic &numFused);

} // namespace mlir::fp8

#endif // FP8_TRANSFORMS_PATTERNS_H
