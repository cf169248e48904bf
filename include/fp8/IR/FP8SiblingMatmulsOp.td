//===- FP8SiblingMatmulsOp.td - Matmuls of one launch ------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8SIBLINGMATMULSOP_TD
#define FP8_IR_FP8SIBLINGMATMULSOP_TD

include "fp8/IR/FP8OpBase.td"

def FP8_SiblingMatmulsOp
    : FP8_Op<"sibling_matmuls", [SingleBlock, NoRegionArguments]> {
  let summary = "matmuls of one operand that one launch computes";
  let description = [{
    A group means what its body means, in place. That they stand together says
    that one kernel computes all of their tiles: the projections of an
    attention, the two halves of a gated MLP, the gradients of their weights.
    Where one of them alone has too few tiles for a GPU, or a last round of few,
    together they have not.

    Of a pair, the second may read the first one's result in its epilogue, as
    the halves of a gated MLP meet: then one tile computes both, and the first
    result is never stored.

    Constraints:
    - (C1) the body is one or more `fp8.matmul`s, of which none uses another's
      results; or a pair of the same A whose second reads the first one's result
      as one operand of its epilogue, element for element;
    - (C2) it yields results of theirs, each at least once; of such a pair,
      those of the second;
    - (C3) all have the same A, or all have the same B.

    Equal products of a body may merge, as any others. Then a result is yielded
    twice, or the group is of one product: canonicalization yields each once,
    and puts a product alone in place of its group.

    Example:

    ```mlir
    %gate, %up = fp8.sibling_matmuls {
      %0 = fp8.matmul %x, %w_gate accumulate = fast
          : tensor<32x128xbf16>, tensor<64x128xbf16> -> tensor<32x64xbf16>
      %1 = fp8.matmul %x, %w_up accumulate = fast
          : tensor<32x128xbf16>, tensor<64x128xbf16> -> tensor<32x64xbf16>
      fp8.yield %0, %1 : tensor<32x64xbf16>, tensor<32x64xbf16>
    } : tensor<32x64xbf16>, tensor<32x64xbf16>

    %h = fp8.sibling_matmuls {
      %0 = fp8.matmul %x, %w_gate accumulate = fast
          : tensor<32x128xbf16>, tensor<64x128xbf16> -> tensor<32x64xbf16>
      %1 = fp8.matmul %x, %w_up accumulate = fast
          epilogue(%0 : tensor<32x64xbf16>) {
      ^bb0(%acc: f32, %g: bf16):
        %wide = arith.extf %g : bf16 to f32
        %product = arith.mulf %acc, %wide : f32
        %rounded = arith.truncf %product : f32 to bf16
        fp8.yield %rounded : bf16
      } : tensor<32x128xbf16>, tensor<64x128xbf16> -> tensor<32x64xbf16>
      fp8.yield %1 : tensor<32x64xbf16>
    } : tensor<32x64xbf16>
    ```
  }];
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict `:` type($results)";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<MatmulOp, 4> getMatmuls();
    /// Whether all have the same A; otherwise they have the same B.
    bool sharesA();
    /// Whether it is a pair whose second matmul reads the first one's result.
    bool isDual();
  }];
  let hasCanonicalizer = 1;
  let hasRegionVerifier = 1;
}

#endif // FP8_IR_FP8SIBLINGMATMULSOP_TD
