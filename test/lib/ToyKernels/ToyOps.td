//===- ToyOps.td - An operation with a kernel of its own ---*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TOY_TOYOPS_TD
#define TOY_TOYOPS_TD

include "fp8/GPU/IR/FP8GPUInterfaces.td"
include "fp8/Kernels/KernelOpInterface.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Toy_Dialect : Dialect {
  let name = "toy";
  let cppNamespace = "::toy";
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

def Toy_ScaleConfigAttr : AttrDef<Toy_Dialect, "ScaleConfig",
    [DeclareAttrInterfaceMethods<FP8GPU_KernelConfigAttrInterface>]> {
  let mnemonic = "scale_config";
  let summary = "how the kernel of a toy.scale is built";
  let parameters = (ins "int64_t":$block);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Toy_ScaleOp : Op<Toy_Dialect, "scale",
    [Pure, AllTypesMatch<["x", "y"]>,
     DeclareOpInterfaceMethods<FP8_KernelOpInterface>]> {
  let summary = "every element times a factor";
  let arguments = (ins AnyRankedTensor:$x, AnyFloat:$factor);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = [{
    $x `by` $factor attr-dict `:` type($x) `,` type($factor)
  }];
}

#endif // TOY_TOYOPS_TD
