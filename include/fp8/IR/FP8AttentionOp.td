//===- FP8AttentionOp.td - Attention -----------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8ATTENTIONOP_TD
#define FP8_IR_FP8ATTENTIONOP_TD

include "fp8/IR/FP8OpBase.td"

def FP8_AttentionOp : FP8_Op<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax of the products of queries and keys, times values";
  let description = [{
    Scaled dot-product attention. With `layout = bshd` (the default) Q is
    `B x Sq x H x D`, K is `B x Sk x Hk x D` and V is `B x Sk x Hk x Dv`; with
    `layout = bhsd` the dimensions of heads come before those of the sequences. H
    is a multiple of Hk, and head h of Q reads head `h / (H / Hk)` of K and V.
    For query i, key j, and head h of a batch:

    ```
    s[i, j]   = scale * sum over d of value(Q)[i, d] * value(K)[j, d]    (f32)
    m[i]      = max over the visible j of s[i, j]
    p[i, j]   = exp(s[i, j] - m[i])                     (0 where j is not visible)
    l[i]      = sum over j of p[i, j]
    out[i, d] = (sum over j of T(p_scale * p[i, j]) * value(V)[j, d]) / (p_scale * l[i])
    lse[i]    = m[i] + ln(l[i])
    ```

    T rounds to the element type of V, of codes as well as of numbers; `p_scale`
    is a power of two, 256 by default for 8 bits and else 1. Nothing saturates:
    p is at most 1, so that T takes at most `p_scale`. The maximum may be that of
    the keys so far, whose contributions are scaled when it grows; as it only
    grows, none exceeds `p_scale` then either. The sum l is of unrounded p.

    Key j is visible to query i if `i + o - left <= j <= i + o + right`, with
    `window = [left, right]`; `*` is no limit, and without a window all keys are
    visible. `window = [*, 0]` is causal. o is 0, or with `bottom_right`
    `Sk - Sq`, so that the last query sees the last key. `mask` is broadcast to
    `B x H x Sq x Sk`, as in NumPy: a number is added to s, of `i1` a 0 hides
    the key. With `key_lengths` batch b has `key_lengths[b]` keys in place of Sk,
    at least 0 and at most Sk: a cache may be longer than what it holds, and what
    K and V have beyond does not matter. With `page_table`, `B x P`, K and V are
    pages instead of batches, `N x page x Hk x D`, or `N x Hk x page x D`: Sk is P
    times `page`, and key j of batch b is row `j mod page` of page
    `page_table[b, j / page]`, which is at least 0 and at most N - 1. A query to
    which no key is visible has the result 0 and an lse of -inf.

    With `key_starts` batch b has no keys before `key_starts[b]`, from 0 to Sk,
    as where shorter sequences are padded on the left: what K and V have there
    does not matter either. Keys keep their numbers, by which windows go. With
    `key_ranges` query i of batch b sees only keys from `key_ranges[b, i, 0]` up
    to, but not including, `key_ranges[b, i, 1]`, of those that it would see:
    sequences that are packed into one batch see their own keys that way. What V
    has of keys that some queries see has to be finite, or may make others NaN.

    With `sinks` head h has one more score, `sinks[h]`, of a key without a value:
    it takes part in m and in l. A query to which no other key is visible has the
    result 0 and an lse of `sinks[h]`.

    With `cap = c` scores bend towards c and -c before a mask is added to them:
    c * tanh(s / c) takes the place of s. Those of a GPU are within 2^-20 * c of
    that.

    With `dropout` and a rate r, rounded to a multiple of 2^-16, a share of r of
    the p is left out of the product with V, but not of l, and the result is
    divided by 1 - r. Which, its operand says, a seed and an offset: those whose
    number of 16 bits is less than r * 2^16. Eight keys and queries share a call
    of Philox4x32-10, whose key are the words of the seed, the second one
    exclusive-ored with the offset's second one. Of key j, query i and head h of
    batch b the counter is `{4 * (j / 16) + j / 2 mod 4, 8 * (i / 16) + i mod 8,
    b * H + h, the offset's first word}`, and the number is the lower half of word
    `2 * (j mod 2) + j / 8 mod 2`, or, where `i / 8` is odd, the upper one. So it
    is on all targets.

    `accumulate = promote` (the default for 8 bits) adds the product of P and V
    of each tile of keys to an f32; `fast` leaves it to the tensor core's own
    accumulator. The products of Q and K are one chain of the tensor core's,
    whose length is D.

    Constraints:
    - (C1) Q, K, V and the result have rank 4, and agree in batches, heads,
      keys and head dimensions as above; numbers of heads are static;
    - (C2) Q and K are both scaled, or tensors of one element type; so are K and
      V; codes have 8 bits;
    - (C3) factors of scaled operands are f32, one for the tensor, or for each
      head of each batch and block of positions, of V's not with `fast`;
    - (C4) `scale` is finite and positive;
    - (C5) `window` has two entries, each at least 0 or `*`;
    - (C6) `p_scale` is a power of two, from 1 to the largest finite
      value of T;
    - (C7) `lse` is `B x H x Sq`, f32;
    - (C8) `mask` has a rank of up to 4, can be broadcast, and has elements of
      i1, f32, bf16 or f16;
    - (C9) operands in high precision have `accumulate = fast`;
    - (C10) `key_lengths` is `B`, i32;
    - (C11) `page_table` is `B x P`, i32; with it `page` is static and positive,
      and factors of K and V are of the tensor;
    - (C12) `key_starts` is `B`, i32;
    - (C13) `key_ranges` is `B x Sq x 2`, i32;
    - (C14) `sinks` is `H`, f32;
    - (C15) `cap` is finite and positive;
    - (C16) `dropout` has two elements, and a rate that is at least 0 and, as it
      is rounded, less than 1.

    Example:

    ```mlir
    %o, %lse = fp8.attention %q, %k, %v scale = 8.838835e-02 window = [*, 0]
        : tensor<2x4096x32x128xbf16>, tensor<2x4096x8x128xbf16>, tensor<2x4096x8x128xbf16>
        -> tensor<2x4096x32x128xbf16>, tensor<2x32x4096xf32>
    ```
  }];
  let arguments = (ins FP8_MatmulOperand:$q, FP8_MatmulOperand:$k,
                       FP8_MatmulOperand:$v, Optional<AnyRankedTensor>:$mask,
                       Optional<1DTensorOf<[I32]>>:$key_lengths,
                       Optional<2DTensorOf<[I32]>>:$page_table,
                       Optional<1DTensorOf<[I32]>>:$key_starts,
                       Optional<3DTensorOf<[I32]>>:$key_ranges,
                       Optional<1DTensorOf<[F32]>>:$sinks,
                       Optional<1DTensorOf<[I64]>>:$dropout,
                       F32Attr:$softmax_scale,
                       OptionalAttr<F32Attr>:$rate,
                       OptionalAttr<F32Attr>:$cap,
                       OptionalAttr<DenseI64ArrayAttr>:$window,
                       UnitAttr:$bottom_right,
                       DefaultValuedAttr<FP8_AttentionLayoutAttr,
                         "::mlir::fp8::AttentionLayout::BSHD">:$layout,
                       OptionalAttr<FP8_AccumulateAttr>:$accumulate,
                       OptionalAttr<F32Attr>:$p_scale);
  let results = (outs FP8_Tensor:$output, Optional<FP8_F32Tensor>:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` `(` $mask^ `:` type($mask) `)`)?
    (`key_lengths` `(` $key_lengths^ `:` type($key_lengths) `)`)?
    (`page_table` `(` $page_table^ `:` type($page_table) `)`)?
    (`key_starts` `(` $key_starts^ `:` type($key_starts) `)`)?
    (`key_ranges` `(` $key_ranges^ `:` type($key_ranges) `)`)?
    (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    (`dropout` `(` $dropout^ `:` type($dropout) `)` `rate` `=` $rate)?
    `scale` `=` $softmax_scale (`cap` `=` $cap^)? custom<Window>($window)
    (`bottom_right` $bottom_right^)? (`layout` `=` `` $layout^)?
    (`accumulate` `=` `` $accumulate^)? (`p_scale` `=` $p_scale^)? attr-dict
    `:` type($q) `,` type($k) `,` type($v) `->` type($output) (`,` type($lse)^)?
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
    /// Keys of a page; kDynamic without pages.
    int64_t getPageSize();
    /// Sk, kDynamic where it is not known.
    int64_t getNumKeys();
    /// Shapes of Q, K and V, and what an element of them is.
    static ::llvm::ArrayRef<int64_t> getShapeOf(::mlir::Value operand);
    static ::mlir::Type getElementTypeOf(::mlir::Value operand);
    /// What P is multiplied by before it is rounded, and how its product with V
    /// is summed, whether or not the operation says so.
    double getFactorOfP();
    Accumulate getSums();
  }];
  let hasVerifier = 1;
}

#endif // FP8_IR_FP8ATTENTIONOP_TD
