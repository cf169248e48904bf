//===- FP8FusionOp.td - A pass over memory -----------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8FUSIONOP_TD
#define FP8_IR_FP8FUSIONOP_TD

include "fp8/IR/FP8OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def FP8_FusionOp : FP8_Op<"fusion", [IsolatedFromAbove, SingleBlock]> {
  let summary = "operations that one pass over memory computes";
  let description = [{
    The results are what the operations of the body yield, with the body's
    arguments for `inputs`: a fusion means what its body means, in place. That
    they stand together says that one kernel computes all of them, reads each
    input once, and writes the results only.

    The body works on one domain, the tensor that it goes through element by
    element: elementwise `linalg.generic`s of it, amaxes of its blocks, scales of
    these, quantizes with them, permuted copies, sums and maxima of its rows.
    Which of that a kernel has is not known here; a fusion that none computes is
    taken apart again.

    Scaled values leave as their codes and factors.

    Constraints:
    - (C1) the body has an argument for each input, of its type, and yields the
      results;
    - (C2) the operations of the body have no side effects.

    Example:

    ```mlir
    %codes, %amax = fp8.fusion(%x, %s, %si) {
    ^bb0(%0: tensor<32x768xbf16>, %1: tensor<1x1xf32>, %2: tensor<1x1xf32>):
      %3 = fp8.quantize %0 scale(%1, %2 : tensor<1x1xf32>, tensor<1x1xf32>)
          : tensor<32x768xbf16> -> <32x768xf8E4M3FN, block = [*, *], scale = f32>
      %payload, %scale_inv = fp8.disassemble %3
          : <32x768xf8E4M3FN, block = [*, *], scale = f32>
      %4 = fp8.amax %0 block = [*, *] : tensor<32x768xbf16>
      fp8.yield %payload, %4 : tensor<32x768xf8E4M3FN>, tensor<1x1xf32>
    } : (tensor<32x768xbf16>, tensor<1x1xf32>, tensor<1x1xf32>)
        -> (tensor<32x768xf8E4M3FN>, tensor<1x1xf32>)
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` $body attr-dict `:` functional-type($inputs, $results)
  }];
  let hasRegionVerifier = 1;
}

#endif // FP8_IR_FP8FUSIONOP_TD
