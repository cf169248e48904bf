//===- FusionDialect.td - How streaming kernels are built --*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONDIALECT_TD
#define FP8_LIB_KERNELS_FUSION_FUSIONDIALECT_TD

include "fp8/GPU/IR/FP8GPUInterfaces.td"
include "mlir/IR/AttrTypeBase.td"

def Fusion_Dialect : Dialect {
  let name = "fp8_fusion";
  let cppNamespace = "::mlir::fp8";
  let summary = "how streaming kernels are built";
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

def Fusion_ConfigAttr : AttrDef<Fusion_Dialect, "FusionConfig",
    [DeclareAttrInterfaceMethods<FP8GPU_KernelConfigAttrInterface>]> {
  let mnemonic = "config";
  let summary = "how a streaming kernel is built";
  let description = [{
    A block has one tile. A thread has `rows` neighbouring rows of it, and of
    each `chunks` times 8 neighbouring columns, as far apart as all threads
    beside each other reach; `lanes` of a warp are beside each other, the others
    below, and so are `across` and `down` warps.

    | parameter | meaning |
    | --- | --- |
    | `rows` | of a thread |
    | `chunks` | of 8 columns, of a thread |
    | `lanes` | of a warp that are beside each other |
    | `across` | warps that are beside each other |
    | `down` | warps that are below each other |
    | `cluster` | blocks that are beside each other, and have whole rows together |
    | `resident` | blocks that a multiprocessor shall have room for |

    So a tile has `rows * 32 / lanes * down` rows and
    `chunks * 8 * lanes * across` columns.

    Constraints:
    - (C1) `rows` and `down` are powers of two up to 32, `chunks` and `across` are
      1 to 32;
    - (C2) `lanes` is a power of two up to 32;
    - (C3) there are at most 32 warps;
    - (C4) `cluster` is 1, 2, 4 or 8;
    - (C5) `resident` is 1 to 8.

    Example: `#fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 3>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$chunks, "int64_t":$lanes,
                        "int64_t":$across, "int64_t":$down, "int64_t":$cluster,
                        "int64_t":$resident);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getWarps() const { return getAcross() * getDown(); }
    int64_t getThreads() const { return getWarps() * 32; }
    int64_t getTileRows() const {
      return getRows() * 32 / getLanes() * getDown();
    }
    int64_t getTileColumns() const {
      return getChunks() * 8 * getLanes() * getAcross();
    }
  }];
}

#endif // FP8_LIB_KERNELS_FUSION_FUSIONDIALECT_TD
