//===- FP8AttentionBackwardOp.td - Gradients of attention --*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8ATTENTIONBACKWARDOP_TD
#define FP8_IR_FP8ATTENTIONBACKWARDOP_TD

include "fp8/IR/FP8OpBase.td"

def FP8_AttentionBackwardOp : FP8_Op<"attention_backward",
    [AttrSizedOperandSegments]> {
  let summary = "gradients of the queries, keys and values of an attention";
  let description = [{
    What `fp8.attention` of the same Q, K and V, scale and window passes back.
    `grad` is the gradient of its result `out`, of its shape; `lse` are the
    logarithms of sums that it left, and `delta[i]` is the sum over d of
    `grad[i, d] * out[i, d]`. For query i, key j, and head h of a batch:

    ```
    s[i, j]  = scale * sum over d of value(Q)[i, d] * value(K)[j, d]      (f32)
    p[i, j]  = exp(s[i, j] - lse[i])           (0 where j is not visible)
    g[i, j]  = T(p[i, j]) * (sum over d of grad[i, d] * value(V)[j, d] - delta[i])
    dv[j, d] = sum over i of T(p[i, j]) * grad[i, d]
    dk[j, d] = scale * sum over i of T(g[i, j]) * value(Q)[i, d]
    dq[i, d] = scale * sum over j of T(g[i, j]) * value(K)[j, d]
    ```

    T rounds to the element type of `grad`. Heads of Q that share one of K and V
    add up in dK and dV. Where Q, K and V are scaled, gradients are those of
    their values: they go straight through a quantization. A query to which no
    key is visible has an lse of -inf, and a gradient of 0.

    With `cap = c` scores are those of `fp8.attention` with it, t[i, j] is
    tanh(s[i, j] / c) before that, and g[i, j] has one more factor,
    T(1 - t[i, j]^2). `key_ranges` are those of `fp8.attention`, too.

    With `dropout` and a rate r the same p are left out as in `fp8.attention`: of
    these neither the sum over d in g nor the term of dv counts, and of the others
    both are divided by 1 - r.

    With `order = deterministic`, the default, results have the same bits in
    every run: dQ adds up tiles of keys in the order of these, beginning with
    zero and rounding to f32 each time. How many keys a tile has, and how they
    are added within one, is the kernel's; on a CPU it is one key. With
    `order = any` a GPU adds the tiles of dQ as they come, and waits for none:
    last bits may differ from one run to the next. Those of dK and dV do not.

    Constraints:
    - (C1) Q, K, V and `grad` have rank 4, and agree in batches, heads, keys and
      head dimensions as for `fp8.attention`; numbers of heads are static;
    - (C2) Q and K are both scaled, or tensors of one element type; so are K and
      V; codes have 8 bits;
    - (C3) factors of scaled operands are f32, one for the tensor or for each
      head of each batch;
    - (C4) `scale` is finite and positive;
    - (C5) `window` has two entries, each at least 0 or `*`;
    - (C6) `lse` and `delta` are `B x H x Sq`, f32;
    - (C7) dQ, dK and dV have the shapes of Q, K and V, and the element type of
      `grad`; operands in high precision have it, too;
    - (C8) `key_ranges` is `B x Sq x 2`, i32;
    - (C9) `cap` is finite and positive;
    - (C10) `dropout` has two elements, and a rate that is at least 0 and, as it
      is rounded, less than 1.

    Example:

    ```mlir
    %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta
        scale = 8.838835e-02 window = [*, 0]
        : tensor<2x4096x32x128xbf16>, tensor<2x4096x32x128xbf16>,
          tensor<2x4096x8x128xbf16>, tensor<2x4096x8x128xbf16>,
          tensor<2x32x4096xf32>, tensor<2x32x4096xf32>
        -> tensor<2x4096x32x128xbf16>, tensor<2x4096x8x128xbf16>,
           tensor<2x4096x8x128xbf16>
    ```
  }];
  let arguments = (ins FP8_Tensor:$grad, FP8_MatmulOperand:$q,
                       FP8_MatmulOperand:$k, FP8_MatmulOperand:$v,
                       FP8_F32Tensor:$lse, FP8_F32Tensor:$delta,
                       Optional<3DTensorOf<[I32]>>:$key_ranges,
                       Optional<1DTensorOf<[I64]>>:$dropout,
                       F32Attr:$softmax_scale,
                       OptionalAttr<F32Attr>:$rate,
                       OptionalAttr<F32Attr>:$cap,
                       OptionalAttr<DenseI64ArrayAttr>:$window,
                       UnitAttr:$bottom_right,
                       DefaultValuedAttr<FP8_AttentionLayoutAttr,
                         "::mlir::fp8::AttentionLayout::BSHD">:$layout,
                       UnitAttr:$any_order);
  let results = (outs FP8_Tensor:$dq, FP8_Tensor:$dk, FP8_Tensor:$dv);
  let assemblyFormat = [{
    $grad `,` $q `,` $k `,` $v `,` $lse `,` $delta
    (`key_ranges` `(` $key_ranges^ `:` type($key_ranges) `)`)?
    (`dropout` `(` $dropout^ `:` type($dropout) `)` `rate` `=` $rate)?
    `scale` `=` $softmax_scale (`cap` `=` $cap^)? custom<Window>($window)
    (`bottom_right` $bottom_right^)? (`layout` `=` `` $layout^)?
    custom<SumOrder>($any_order) attr-dict
    `:` type($grad) `,` type($q) `,` type($k) `,` type($v) `,` type($lse) `,`
    type($delta) `->` type($dq) `,` type($dk) `,` type($dv)
  }];
  let extraClassDeclaration = [{
    /// Limits of the window that there are, else nothing.
    std::optional<int64_t> getLeft();
    std::optional<int64_t> getRight();
    bool isScaled() { return ::llvm::isa<ScaledType>(getQ().getType()); }
    /// The dimensions of the sequences and of the heads.
    int64_t getSequenceDim() {
      return getLayout() == AttentionLayout::BSHD ? 1 : 2;
    }
    int64_t getHeadDim() { return 3 - getSequenceDim(); }
  }];
  let hasVerifier = 1;
}

#endif // FP8_IR_FP8ATTENTIONBACKWARDOP_TD
