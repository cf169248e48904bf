//===- Passes.td - Passes on kernels -----------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_TRANSFORMS_PASSES_TD
#define FP8_GPU_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerApproximateMathPass
    : InterfacePass<"fp8-lower-approximate-math", "::mlir::FunctionOpInterface"> {
  let summary = "elementwise functions as the GPU's approximate instructions";
  let description = [{
    In functions with `fp8_gpu.math = #fp8_gpu.math<approximate>`, `math.exp` and
    division become the GPU's approximate instructions (a relative error of
    2^-22), `math.tanh`, `math.erf` and the others polynomials, so that kernels
    need no device library. `1 + erf(x)`, `1 + tanh(x)` and `x / (1 + exp(y))`,
    which GELU and SiLU are made of, have shorter formulas of their own, and
    `math.tanh` with `fastmath<afn>` is one instruction with an error of 2^-11.
    f32 only; wider rounding hides in the result type.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def LowerExactMathPass
    : InterfacePass<"fp8-lower-exact-math", "::mlir::FunctionOpInterface"> {
  let summary = "elementwise functions as the CPU computes them";
  let description = [{
    In functions without `fp8_gpu.math`, or with `#fp8_gpu.math<exact>`, division
    and square roots stay what they are, correctly rounded: scales are quotients.
    `math.exp`, `math.tanh`, `math.erf` and others on f32 become polynomials, a
    few ulp off, so that kernels need no device library. A function on f64 is an
    error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def ConvertOutlinedKernelsPass
    : Pass<"fp8-convert-outlined-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "gpu.func to the LLVM dialect";
  let description = [{
    Takes the kernels of a module that were outlined from loops to functions of
    the LLVM dialect and simplifies them; those that are functions of it already
    stay as they are.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

#endif // FP8_GPU_TRANSFORMS_PASSES_TD
