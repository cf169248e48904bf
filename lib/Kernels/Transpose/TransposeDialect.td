//===- TransposeDialect.td - Configs of transposes ---------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSEDIALECT_TD
#define FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSEDIALECT_TD

include "fp8/GPU/IR/FP8GPUInterfaces.td"
include "mlir/IR/AttrTypeBase.td"

def Transpose_Dialect : Dialect {
  let name = "fp8_transpose";
  let cppNamespace = "::mlir::fp8";
  let summary = "how transposing kernels are built";
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

def Transpose_ConfigAttr : AttrDef<Transpose_Dialect, "TransposeConfig",
    [DeclareAttrInterfaceMethods<FP8GPU_KernelConfigAttrInterface>]> {
  let mnemonic = "config";
  let summary = "how a transposing kernel is built";
  let description = [{
    | parameter | meaning |
    | --- | --- |
    | `warps` | of a block, which share a tile: 128 bytes of as many rows, or less of larger elements |

    Constraints:
    - (C1) `warps` is 1, 2, 4, 8, 16 or 32.

    Example: `#fp8_transpose.config<warps = 8>`.
  }];
  let parameters = (ins "int64_t":$warps);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSEDIALECT_TD
