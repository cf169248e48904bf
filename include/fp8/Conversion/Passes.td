//===- Passes.td - Conversions out of the fp8 dialect -*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_CONVERSION_PASSES_TD
#define FP8_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandFloatCastsPass : Pass<"fp8-expand-float-casts"> {
  let summary = "expand casts to and from 8-bit, 4-bit and bf16 floats into integer arithmetic";
  let description = [{
    LLVM 22 has no lowering of `arith.truncf` and `arith.extf` on f8E4M3FN,
    f8E5M2, f8E8M0FNU and f4E2M1FN. This pass replaces them, and the casts
    between f32 and bf16, by branch-free integer arithmetic that vectorises, for
    scalars and vectors. Rounding is to nearest even, f8E8M0FNU rounds to
    nearest power of two; nothing saturates: a caller that wants saturation
    clamps first. A later LLVM that lowers these casts replaces this pass.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // FP8_CONVERSION_PASSES_TD
