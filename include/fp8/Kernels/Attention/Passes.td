//===- Passes.td - Passes on attention ---------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_ATTENTION_PASSES_TD
#define FP8_KERNELS_ATTENTION_PASSES_TD

include "mlir/Pass/PassBase.td"

def QuantizeAttentionPass : Pass<"fp8-quantize-attention", "::mlir::ModuleOp"> {
  let summary = "have attention's kernel quantize its result";
  let description = [{
    Where nobody reads the result of an `fp8.attention` but a quantization with a
    scale that is known before, as `delayed` and `static` have it, and its amax,
    the kernel stores codes: `fp8.quantized_attention`. Reshapes may stand
    between. Bits are the same. A remark says why the result of attention of
    codes stays in 16 bits.

    ```mlir
    %o = fp8.attention %q, %k, %v ... -> tensor<1x256x4x64xbf16>
    %x = tensor.collapse_shape %o [[0, 1], [2, 3]] : ... into tensor<256x256xbf16>
    %y = fp8.quantize %x scale(%s, %si : ...) : ...
    // becomes
    %codes = fp8.quantized_attention scale(%s : tensor<1x1xf32>) {
      %o = fp8.attention %q, %k, %v ... -> tensor<1x256x4x64xbf16>
      fp8.attention_yield %o : tensor<1x256x4x64xbf16>
    } : tensor<1x256x4x64xf8E4M3FN>
    %x = tensor.collapse_shape %codes [[0, 1], [2, 3]] : ...
    %y = fp8.assemble %x, %si : ...
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "What kernels are for; a CPU has none, and nothing is done">
  ];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numQuantized", "num-quantized", "Attentions that store codes">
  ];
}

#endif // FP8_KERNELS_ATTENTION_PASSES_TD
