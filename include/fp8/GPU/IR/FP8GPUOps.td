//===- FP8GPUOps.td - Launches of kernels ------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_IR_FP8GPUOPS_TD
#define FP8_GPU_IR_FP8GPUOPS_TD

include "fp8/GPU/IR/FP8GPUAttrs.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def FP8GPU_Buffer : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef],
                              "a tensor or a strided memref">;
def FP8GPU_Scalar : AnyTypeOf<[AnySignlessInteger, AnyFloat],
                              "a signless integer or a float">;

def FP8GPU_LaunchOp : Op<FP8GPU_Dialect, "launch",
    [AttrSizedOperandSegments, DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a kernel";
  let description = [{
    What `fp8-launch-kernels` makes of an operation that has a kernel: its
    results in destinations, so that it bufferizes like any structured
    operation. `launch` says what the kernel does with each of `ins` and `outs`,
    which are its arguments in order, and where its parameters come from;
    `captures` are scalars.

    Constraints:
    - (C1) all of `ins` and `outs` are tensors, and there is a result for each of
      `outs`, of its type; or all are memrefs, and there is no result;
    - (C2) `ins` and `outs` are the arguments of `launch`: their number, ranks
      and element types; `ins` are read and `outs` are written;
    - (C3) `captures` have the types of the captures of `launch`;
    - (C4) if the kernel is in the program, its own `fp8_gpu.launch` is `launch`.

    Example:

    ```mlir
    #double = #fp8_gpu.launch<
      arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
                   #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
      extents = [#fp8_gpu.extent<"n", 0, 0>],
      params = [#fp8_gpu.pointer<0>, #fp8_gpu.pointer<1>,
                #fp8_gpu.value<affine_map<()[s0] -> (s0)> : i32>],
      grid = affine_map<()[s0] -> (s0 ceildiv 256)>, block = 256>

    func.func @f(%x: tensor<?xf32>, %d: tensor<?xf32>) -> tensor<?xf32> {
      %y = fp8_gpu.launch @kernels::@double #double ins(%x : tensor<?xf32>)
          outs(%d : tensor<?xf32>) -> tensor<?xf32>
      return %y : tensor<?xf32>
    }
    ```
  }];
  let arguments = (ins SymbolRefAttr:$kernel, FP8GPU_LaunchAttr:$launch,
                       Variadic<FP8GPU_Buffer>:$ins,
                       Variadic<FP8GPU_Scalar>:$captures,
                       Variadic<FP8GPU_Buffer>:$outs);
  let results = (outs Variadic<AnyRankedTensor>:$tensors);
  let assemblyFormat = [{
    $kernel $launch (`ins` `(` $ins^ `:` type($ins) `)`)?
    (`captures` `(` $captures^ `:` type($captures) `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict (`->` type($tensors)^)?
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    /// Which argument of the launch `operand` is, none for a capture.
    ::std::optional<int64_t> getArgumentNumber(::mlir::OpOperand &operand);
    /// That argument, null for a capture.
    KernelArgumentAttr getArgument(OpOperand &operand);
  }];
  let hasVerifier = 1;
}

#endif // FP8_GPU_IR_FP8GPUOPS_TD
