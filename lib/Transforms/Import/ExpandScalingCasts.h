//===- ExpandScalingCasts.h - Scaled casts as arithmetic --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_IMPORT_EXPANDSCALINGCASTS_H
#define FP8_LIB_TRANSFORMS_IMPORT_EXPANDSCALINGCASTS_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class Operation;
class RewriterBase;
} // namespace mlir

namespace mlir::fp8 {

/// Replaces `op`, an arith.scaling_extf or scaling_truncf of scalars or shaped
/// values, by what it computes, in f32. Fails if it has types of more than 32
/// bits, or rounds otherwise than to nearest even.
LogicalResult expandScalingCast(RewriterBase &rewriter, Operation *op);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_IMPORT_EXPANDSCALINGCASTS_H
