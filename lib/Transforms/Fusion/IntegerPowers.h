//===- IntegerPowers.h - Integer powers as products -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_FUSION_INTEGERPOWERS_H
#define FP8_LIB_TRANSFORMS_FUSION_INTEGERPOWERS_H

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::fp8 {

/// math.fpowi becomes the products by which compiler-rt's
/// `__powisf2` computes it, which every target has and rounds equally. Numbers
/// of less than 32 bits are rounded once, at the end. Upstream's expansion has
/// -Inf for negative powers of 0.
void populateIntegerPowersPatterns(RewritePatternSet &patterns);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_FUSION_INTEGERPOWERS_H
