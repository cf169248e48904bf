//===- QuantizeUses.h - Which GEMMs a quantized tensor feeds ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_QUANTIZEUSES_H
#define FP8_ANALYSIS_QUANTIZEUSES_H

#include "fp8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// Operand 0 or 1 of a GEMM: an fp8.matmul, or a contraction of dequantizes
/// that fp8-apply-recipe made.
struct GemmUse {
  Operation *gemm;
  unsigned operand;

  /// The GEMM's fp8.name; empty without one.
  StringRef getName() const;
  /// The GEMM's fp8.role; fprop without one.
  GemmRole getRole() const;
  /// What the operand holds; nothing if the GEMM does not say.
  std::optional<OperandKind> getKind() const;
};

/// The GEMMs that `quantized` feeds in its function, through data movement and
/// dequantizes, in no particular order.
SmallVector<GemmUse> getGemmUses(Value quantized);

/// The use that a quantized tensor is named after, of those whose GEMM has a
/// name: the forward's if there is one and not a recomputation's, then the
/// first in the program. Nothing if there is none.
std::optional<GemmUse> getNamingUse(Value quantized);

/// What a quantized tensor is called, in a scaling state and in statistics: the
/// quantize's fp8.name. Else the name of the GEMM that it is named after with
/// `.x`, `.w` or `.dy` for an activation, a weight or a gradient, `.a` or `.b`
/// if both operands of that GEMM hold the same, or it does not say. Empty if
/// there is neither.
std::string getTensorName(QuantizeOp op);

} // namespace mlir::fp8

#endif // FP8_ANALYSIS_QUANTIZEUSES_H
