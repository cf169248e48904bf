//===- FP8KernelOps.td - Launches of generated kernels ------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8KERNELOPS_TD
#define FP8_IR_FP8KERNELOPS_TD

include "fp8/IR/FP8OpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

def FP8_Buffer : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef],
                           "a tensor or a strided memref">;
def FP8_Scalar : AnyTypeOf<[AnySignlessInteger, AnyFloat],
                           "a signless integer or a float">;

def FP8_LaunchMatmulOp : FP8_EffectOp<"launch_matmul",
    [AttrSizedOperandSegments, DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "run the kernel of a matmul";
  let description = [{
    What `fp8-launch-kernels` makes of a `fp8.matmul` with a kernel: payloads
    and factors apart, results in destinations, so that it bufferises. The
    kernel is one of `fp8-build-kernels`, and its attribute `fp8.launch` says
    what it takes (docs/Kernels.md).

    `epilogue_operands` are those of the epilogue, `captures` the scalars that it uses
    from around the matmul. The first of `outs` is overwritten; the second, if
    the kernel has an amax, is raised to the largest magnitude.

    Constraints:
    - (C1) all of `a`, `b`, factors, `epilogue_operands` and `outs` are tensors, and
      there is a result for each of `outs`, of its type; or all are memrefs, and
      there is no result;
    - (C2) `a`, `b` and the first of `outs` have the same rank, 2 or 3;
    - (C3) there are one or two `outs`.

    Example:

    ```mlir
    %0 = fp8.launch_matmul @fp8_kernels::@matmul
        a(%a, %a_inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32>)
        b(%b, %b_inv : tensor<64x128xf8E4M3FN>, tensor<1x1xf32>)
        operands(%bias : tensor<64xbf16>) outs(%d : tensor<32x64xbf16>)
        -> tensor<32x64xbf16>
    ```
  }];
  let arguments = (ins SymbolRefAttr:$kernel,
                       FP8_Buffer:$a, FP8_Buffer:$scale_a,
                       FP8_Buffer:$b, FP8_Buffer:$scale_b,
                       Variadic<FP8_Buffer>:$epilogue_operands,
                       Variadic<FP8_Scalar>:$captures,
                       Variadic<FP8_Buffer>:$outs);
  let results = (outs Variadic<AnyRankedTensor>:$tensors);
  let assemblyFormat = [{
    $kernel `a` `(` $a `,` $scale_a `:` type($a) `,` type($scale_a) `)`
    `b` `(` $b `,` $scale_b `:` type($b) `,` type($scale_b) `)`
    (`operands` `(` $epilogue_operands^ `:` type($epilogue_operands) `)`)?
    (`captures` `(` $captures^ `:` type($captures) `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict (`->` type($tensors)^)?
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
  }];
  let hasVerifier = 1;
}

#endif // FP8_IR_FP8KERNELOPS_TD
