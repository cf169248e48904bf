//===- Passes.td - Selection and generation of kernels ------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_PASSES_TD
#define FP8_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SelectKernelsPass : Pass<"fp8-select-kernels", "::mlir::ModuleOp"> {
  let summary = "decide how each matmul's kernel is built";
  let description = [{
    Writes `fp8.gemm_config` on every `fp8.matmul` that has none: tile, stages,
    schedule, from the extents that are known, the types and the factors. Later
    passes obey. A config that is there already is only checked, so that tests
    and tables of measurements can pin one.

    A matmul that no kernel computes stays as it is, with a remark that says
    why.

    `every-candidate` repeats each matmul with every config of the table that
    fits it, instead of choosing: for tuning, and for tests of the table.

    `table` is a file that `fp8-tune` wrote. A matmul that it has takes the
    config that was fastest there; one that it has not, or whose config no
    longer fits, is chosen for as without it, the latter with a remark.
  }];
  let options = [
    Option<"table", "table", "std::string", "\"\"",
           "File of measured choices, written by fp8-tune">,
    Option<"everyCandidate", "every-candidate", "bool", "false",
           "Repeat each matmul with every config that fits">
  ];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let statistics = [
    Statistic<"numSelected", "num-selected", "Number of kernels chosen">,
    Statistic<"numTuned", "num-tuned", "Number of kernels from the table">
  ];
}

def BuildKernelsPass : Pass<"fp8-build-kernels", "::mlir::ModuleOp"> {
  let summary = "generate a GPU kernel for each matmul with a config";
  let description = [{
    Puts kernels for the `fp8.matmul`s that have a `fp8.gemm_config` into the
    `gpu.module` `@fp8_kernels` and writes their symbols on the ops, as
    `fp8.kernel`. Equal matmuls share a kernel. The kernel's interface is
    described in docs/Kernels.md, and for each kernel by its `fp8.launch`.

    A kernel is built of `scf`, `arith`, `math`, `llvm` and `nvvm` operations:
    `fp8-lower-kernels` takes it to the LLVM dialect.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Number of kernels generated">
  ];
}

def LowerKernelMathPass
    : Pass<"fp8-lower-kernel-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "elementwise functions of kernels without a device library";
  let description = [{
    `math.exp` and division become the GPU's approximate instructions (a relative
    error of 2^-22), `math.tanh`, `math.erf` and the others polynomials, so that
    kernels need no libdevice. `1 + erf(x)`, `1 + tanh(x)` and `x / (1 + exp(y))`,
    which GELU and SiLU are made of, have shorter formulas of their own, and
    `math.tanh` with `fastmath<afn>` is one instruction with an error of 2^-11.
    f32 only; wider rounding hides in the result type.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def LaunchKernelsPass : Pass<"fp8-launch-kernels", "::mlir::ModuleOp"> {
  let summary = "matmuls with a kernel to launches of it";
  let description = [{
    Every `fp8.matmul` with a `fp8.kernel` becomes a `fp8.launch_matmul`, which
    has its results in destinations and so bufferises.

    ```mlir
    %y = fp8.matmul %a, %b {fp8.kernel = @fp8_kernels::@matmul}
        : !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>,
          !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xbf16>
    // becomes
    %payload, %scale_inv = fp8.disassemble %a
    %payload_0, %scale_inv_0 = fp8.disassemble %b
    %d = tensor.empty() : tensor<32x64xbf16>
    %y = fp8.launch_matmul @fp8_kernels::@matmul
        a(%payload, %scale_inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32>)
        b(%payload_0, %scale_inv_0 : tensor<64x128xf8E4M3FN>, tensor<1x1xf32>)
        outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // FP8_KERNELS_PASSES_TD
