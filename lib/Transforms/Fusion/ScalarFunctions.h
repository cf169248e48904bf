//===- ScalarFunctions.h - Functions that targets lack ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_FUSION_SCALARFUNCTIONS_H
#define FP8_LIB_TRANSFORMS_FUSION_SCALARFUNCTIONS_H

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::fp8 {

/// What upstream lowers for no target, or not for all, as arithmetic that every
/// target has and rounds equally: math.clampf, ipowi, isinf, isnormal and
/// sincos of scalars, and arith.addui_extended of index.
void populateScalarFunctionsPatterns(RewritePatternSet &patterns);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_FUSION_SCALARFUNCTIONS_H
