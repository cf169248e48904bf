//===- FP8QuantizedAttentionOp.td - Codes of attention -----*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8QUANTIZEDATTENTIONOP_TD
#define FP8_IR_FP8QUANTIZEDATTENTIONOP_TD

include "fp8/IR/FP8OpBase.td"

def FP8_QuantizedAttentionOp : FP8_Op<"quantized_attention",
    [AttrSizedResultSegments]> {
  let summary = "attention whose result is quantized where it is computed";
  let description = [{
    The `fp8.attention` in the body, whose result is never in memory: it leaves
    as codes. With `out` the result, rounded to its element type as always:

    ```
    codes[..] = C(clamp(out[..] * scale))     (as fp8.quantize, f32)
    amax      = max over all of |out[..]|     (as fp8.amax: NaN are ignored)
    ```

    So bits are those of attention, `fp8.quantize` and `fp8.amax` one after the
    other. `fp8-quantize-attention` forms it of these.

    Constraints:
    - (C1) the body has one `fp8.attention`, of which it yields all results;
    - (C2) `codes` have the shape of its result;
    - (C3) its result is of bf16 or f16;
    - (C4) `scale` has one element, and `amax` has its type;
    - (C5) `lse` is that of the attention, if this has one.

    Example:

    ```mlir
    %codes, %amax = fp8.quantized_attention scale(%scale : tensor<1x1xf32>) {
      %o = fp8.attention %q, %k, %v scale = 8.838835e-02
          : tensor<2x64x4x128xbf16>, tensor<2x64x4x128xbf16>, tensor<2x64x4x128xbf16>
          -> tensor<2x64x4x128xbf16>
      fp8.attention_yield %o : tensor<2x64x4x128xbf16>
    } : tensor<2x64x4x128xf8E4M3FN> amax tensor<1x1xf32>
    ```
  }];
  let arguments = (ins FP8_F32Tensor:$scale);
  let results = (outs RankedTensorOf<[F8E4M3FN, F8E5M2]>:$codes, Optional<FP8_F32Tensor>:$amax,
                      Optional<FP8_F32Tensor>:$lse);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `scale` `(` $scale `:` type($scale) `)` $body attr-dict
    `:` type($codes) (`amax` type($amax)^)? (`lse` type($lse)^)?
  }];
  let extraClassDeclaration = [{
    AttentionOp getAttention();
  }];
  let hasRegionVerifier = 1;
}

def FP8_AttentionYieldOp : FP8_Op<"attention_yield",
    [Terminator, HasParent<"QuantizedAttentionOp">]> {
  let summary = "what an attention gives to be quantized, and its logarithms";
  let arguments = (ins Variadic<FP8_Tensor>:$values);
  let assemblyFormat = "$values `:` type($values) attr-dict";
}

#endif // FP8_IR_FP8QUANTIZEDATTENTIONOP_TD
