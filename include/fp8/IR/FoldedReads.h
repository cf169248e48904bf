//===- FoldedReads.h - What kernels read in place of a result ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FOLDEDREADS_H
#define FP8_IR_FOLDEDREADS_H

#include "fp8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// On an fp8.dequantize: the kernels that read its result read codes and
/// factors in its place, so that no pass over memory makes it.
inline constexpr StringLiteral kFoldedAttrName = "fp8.folded";

inline bool isFolded(DequantizeOp op) { return op->hasAttr(kFoldedAttrName); }

/// On a function's argument: packed codes lie as kernels read them that lift
/// in registers (docs/PackedWeights.md), in the order of this version.
inline constexpr StringLiteral kArrangedAttrName = "fp8.arranged";
inline constexpr int64_t kArrangedVersion = 1;

/// The operation that makes `operand`, if the kernels that read it fold it.
inline DequantizeOp getFoldedDequantize(Value operand) {
  auto dequantize = operand.getDefiningOp<DequantizeOp>();
  return dequantize && isFolded(dequantize) ? dequantize : DequantizeOp();
}

} // namespace mlir::fp8

#endif // FP8_IR_FOLDEDREADS_H
