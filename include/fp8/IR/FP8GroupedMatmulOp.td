//===- FP8GroupedMatmulOp.td - Matmuls of ranges -----------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8GROUPEDMATMULOP_TD
#define FP8_IR_FP8GROUPEDMATMULOP_TD

include "fp8/IR/FP8OpBase.td"

def FP8_GroupBoundsTensor : 1DTensorOf<[I32]>;

def FP8_GroupedMatmulOp : FP8_Op<"grouped_matmul", [SingleBlock]> {
  let summary = "products of ranges of rows, or of K, with one operand each";
  let description = [{
    The products of a mixture of experts. How many tokens an expert has is known
    when the program runs, and may be none.

    With `offsets` the tokens are sorted by expert, and group g is the range
    [`offsets[g]`, `offsets[g + 1]`) of the T tokens. What the ranks of A and B
    say decides which dimension is grouped.

    Rows, forward and the gradient of the tokens: A is `T x K`, B is `G x N x K`,
    and

    ```
    acc[t, n]    = sum over k of value(A)[t, k] * value(B)[g, n, k]  (t in group g)
    result[t, n] = epilogue(acc[t, n], operands[t, n]...)            (t in group g)
    result[t, n] = 0                                                (t in no group)
    ```

    K, the gradient of the weights: A is `M x T`, B is `N x T`, and

    ```
    acc[g, m, n] = sum over t in group g of value(A)[m, t] * value(B)[n, t]
    ```

    which is 0 for an empty group.

    With `counts` each expert has room for M tokens, and group g is the first
    `counts[g]` of its rows: A is `G x M x K`, B is `G x N x K`, and

    ```
    result[g, m, n] = epilogue(sum over k of value(A)[g, m, k] * value(B)[g, n, k],
                               operands[g, m, n]...)             (m < counts[g])
    result[g, m, n] = 0                                         (m >= counts[g])
    ```

    With `counts_k`, the gradient of the weights, room is for T tokens, which are
    summed over: A is `G x M x T`, B is `G x N x T`, and

    ```
    acc[g, m, n] = sum over t < counts[g] of value(A)[g, m, t] * value(B)[g, n, t]
    ```

    What A and B hold of tokens that are not there does not matter, NaN included;
    a factor that tokens share is that of all of them.

    `undef_padding` makes the rows of the result that are no token's anything
    at all, in place of 0, for programs that read no such row; with room for many
    tokens and few of them, clearing takes longer than the product. A kernel
    leaves them as they are in memory, the loop clears them. `expected_m` is
    how many tokens a group may be expected to have; it is for the choice of a
    kernel alone.

    Everything else is as of `fp8.matmul`: without
    an epilogue `acc` is rounded; A and B are scaled, or both in one of f32, bf16
    and f16; `transpose_a` and `transpose_b` say that the last two dimensions
    are given in the other order.

    Offsets begin with 0, do not decrease, and do not exceed T. Counts are not
    negative and do not exceed M, or T.

    Constraints:
    - (C1) with offsets, A has rank 2, B has rank 3 or 2; with counts, both have
      rank 3;
    - (C2) A and B agree in K, or in T where that is summed over, and with counts
      in G;
    - (C3) `offsets` has one element more than there are groups, counts have one
      for each;
    - (C4) the result is `T x N`, or `G x M x N`;
    - (C5) one group's A and B could be multiplied by an `fp8.matmul`; no two
      groups share a factor of an operand that has a dimension of groups unless
      it has only one; with offsets no two rows share one of A unless all do;
    - (C6) the epilogue takes f32 and one scalar for each epilogue operand, and
      yields the element type of the result;
    - (C7) epilogue operands can be broadcast to the result;
    - (C8) `undef_padding` goes with groups of rows, `expected_m` with
      counts, and is no less than 0.

    Example:

    ```mlir
    %y = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>)
        : !fp8.scaled<1024x256xf8E4M3FN, block = [1, *], scale = f32>,
          !fp8.scaled<4x512x256xf8E4M3FN, block = [1, 1, *], scale = f32>
        -> tensor<1024x512xbf16>
    %z = fp8.grouped_matmul %a, %w counts(%counts : tensor<4xi32>)
        : !fp8.scaled<4x256x256xf8E4M3FN, block = [1, 1, *], scale = f32>,
          !fp8.scaled<4x512x256xf8E4M3FN, block = [1, 1, *], scale = f32>
        -> tensor<4x256x512xbf16>
    ```
  }];
  let arguments = (ins FP8_MatmulOperand:$a, FP8_MatmulOperand:$b,
                       FP8_GroupBoundsTensor:$bounds,
                       Variadic<AnyRankedTensor>:$epilogue_operands,
                       DefaultValuedAttr<FP8_AccumulateAttr,
                         "::mlir::fp8::Accumulate::Promote">:$accumulate,
                       FP8_GroupBoundsAttr:$bounded_by,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b,
                       UnitAttr:$undef_padding,
                       OptionalAttr<I64Attr>:$expected_m);
  let results = (outs FP8_Tensor:$result);
  let regions = (region MaxSizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    $a `,` $b `` $bounded_by `` `(` $bounds `:` type($bounds) `)`
    (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)?
    custom<UndefPadding>($undef_padding)
    (`accumulate` `=` `` $accumulate^)?
    `` custom<Epilogue>($epilogue_operands, type($epilogue_operands), $epilogue)
    `` custom<NamedAttributes>(attr-dict)
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Whether the accumulator goes through a region before it is stored.
    bool hasEpilogue() { return !getEpilogue().empty(); }
    /// Whether A and B are scaled, and not in high precision.
    bool isScaled() { return ::llvm::isa<ScaledType>(getA().getType()); }
    /// Whether the groups are ranges of what is summed over, and not of rows.
    bool sumsGroups();
    /// Whether each group has room of its own, in which it is what comes first.
    bool isMasked() { return getBoundedBy() != GroupBounds::Offsets; }
    int64_t getNumGroups();
    /// T x K and G x N x K, or M x T and N x T, whichever way they are given;
    /// with counts G x M x K and G x N x K.
    ScaledType getScaledA();
    ScaledType getScaledB();
    ::llvm::SmallVector<int64_t> getShapeOfA();
    ::llvm::SmallVector<int64_t> getShapeOfB();
    ::mlir::Type getElementTypeOfA();
    ::mlir::Type getElementTypeOfB();
    /// Why the scaled `a` and `b` cannot be multiplied group by group (C1, C2,
    /// C5); empty if they can.
    static std::string describeMismatch(ScaledType a, ScaledType b,
                                        Accumulate accumulate);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif // FP8_IR_FP8GROUPEDMATMULOP_TD
