//===- DoubleFunctions.h - Functions of f64 as arithmetic -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_GPU_TRANSFORMS_DOUBLEFUNCTIONS_H
#define FP8_LIB_GPU_TRANSFORMS_DOUBLEFUNCTIONS_H

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::fp8 {

/// math.exp, log, log2 and log10 of f64 as arithmetic, 2 ulp off at most:
/// upstream's approximations are of f32.
void populateDoubleFunctionsPatterns(RewritePatternSet &patterns);

} // namespace mlir::fp8

#endif // FP8_LIB_GPU_TRANSFORMS_DOUBLEFUNCTIONS_H
