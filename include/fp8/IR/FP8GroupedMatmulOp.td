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

def FP8_OffsetsTensor : 1DTensorOf<[I32]>;

def FP8_GroupedMatmulOp : FP8_Op<"grouped_matmul", [SingleBlock]> {
  let summary = "products of ranges of rows, or of K, with one operand each";
  let description = [{
    The products of a mixture of experts, whose tokens are sorted by expert.
    Group g is the range [`offsets[g]`, `offsets[g + 1]`) of the T tokens; where
    it ends is known when the program runs, and a group may be empty. What the
    ranks of A and B say decides which dimension is grouped.

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

    which is 0 for an empty group. Everything else is as of `fp8.matmul`: without
    an epilogue `acc` is rounded; A and B are scaled, or both in one of f32, bf16
    and f16; `transpose_a` and `transpose_b` say that the last two dimensions
    are given in the other order.

    Offsets begin with 0, do not decrease, and do not exceed T.

    Constraints:
    - (C1) A has rank 2, B has rank 3 or 2;
    - (C2) A and B agree in K, or in T where that is summed over;
    - (C3) `offsets` has one element more than there are groups;
    - (C4) the result is `T x N`, or `G x M x N`;
    - (C5) one group's A and B could be multiplied by an `fp8.matmul`; no two
      groups share a factor of B unless it has only one, and no two rows one of
      A unless all do;
    - (C6) the epilogue takes f32 and one scalar for each epilogue operand, and
      yields the element type of the result;
    - (C7) epilogue operands can be broadcast to the result.

    Example:

    ```mlir
    %y = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>)
        : !fp8.scaled<1024x256xf8E4M3FN, block = [1, *], scale = f32>,
          !fp8.scaled<4x512x256xf8E4M3FN, block = [1, 1, *], scale = f32>
        -> tensor<1024x512xbf16>
    ```
  }];
  let arguments = (ins FP8_MatmulOperand:$a, FP8_MatmulOperand:$b,
                       FP8_OffsetsTensor:$offsets,
                       Variadic<AnyRankedTensor>:$epilogue_operands,
                       DefaultValuedAttr<FP8_AccumulateAttr,
                         "::mlir::fp8::Accumulate::Promote">:$accumulate,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs FP8_Tensor:$result);
  let regions = (region MaxSizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    $a `,` $b `offsets` `(` $offsets `:` type($offsets) `)`
    (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)?
    (`accumulate` `=` `` $accumulate^)?
    `` custom<Epilogue>($epilogue_operands, type($epilogue_operands), $epilogue)
    attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Whether the accumulator goes through a region before it is stored.
    bool hasEpilogue() { return !getEpilogue().empty(); }
    /// Whether A and B are scaled, and not in high precision.
    bool isScaled() { return ::llvm::isa<ScaledType>(getA().getType()); }
    /// Whether the groups are ranges of what is summed over, and not of rows.
    bool sumsGroups();
    int64_t getNumGroups();
    /// T x K and G x N x K, or M x T and N x T, whichever way they are given.
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
