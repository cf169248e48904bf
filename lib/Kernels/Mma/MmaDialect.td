//===- MmaDialect.td - Configs of kernels by mma.sync ------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_MMADIALECT_TD
#define FP8_LIB_KERNELS_MMA_MMADIALECT_TD

include "fp8/GPU/IR/FP8GPUInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Mma_Dialect : Dialect {
  let name = "fp8_mma";
  let cppNamespace = "::mlir::fp8::mma";
  let summary = "how kernels of single warps' tensor cores are built";
  let description = [{
    The configs of kernels by `mma.sync`, for Ada (`sm_89`) and for small
    Blackwell GPUs (`sm_120a`, `sm_121a`): what `fp8-select-kernels` decides and
    `fp8-tune` measures. An attribute for each kind of kernels.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

def Mma_GemmStore : I32EnumAttr<"GemmStore",
    "how a thread stores results: two neighbours at once, or one by one", [
  I32EnumAttrCase<"Pairs", 0, "pairs">,
  I32EnumAttrCase<"Direct", 1, "direct">]> {
  let cppNamespace = "::mlir::fp8::mma";
  let genSpecializedAttr = 0;
}

def Mma_GemmStoreParameter : EnumParameter<Mma_GemmStore> {
  let defaultValue = "::mlir::fp8::mma::GemmStore::Pairs";
}

def Mma_GemmConfigAttr : AttrDef<Mma_Dialect, "GemmConfig",
    [DeclareAttrInterfaceMethods<FP8GPU_KernelConfigAttrInterface>]> {
  let mnemonic = "gemm";
  let summary = "how a generated matmul kernel is built";
  let description = [{
    Written by `fp8-select-kernels`, obeyed by `fp8-build-kernels`. K is walked
    in blocks of 128 bytes. Warps share a tile's rows and columns so that they
    read the least of shared memory; sums are in registers.

    | parameter | meaning |
    | --- | --- |
    | `tile_m`, `tile_n` | extents of an output tile |
    | `stages` | stages of the ring that all threads copy to (`cp.async`) and multiply from |
    | `group` | tiles along M that are walked before the next one along N, for reuse in L2 |
    | `split_k` | parts of K that are summed in different blocks, in f32 and in a fixed order |
    | `swap_ab` | computes the transposed product, so that a small M takes the side of the instruction that shrinks to 16 |
    | `store` | `pairs`, for results whose rows are multiples of 16 bytes, or `direct` |
    | `warpgroups` | four warps each, 1 or 2, which share a tile |
    | `whole_chunks` | promises that rows of K are multiples of 16 bytes, which copies then take or leave |

    Constraints:
    - (C1) the extent that the instruction takes as rows (`tile_m`, with
      `swap_ab` `tile_n`) is a multiple of 64 for each of `warpgroups`, and at
      most 256;
    - (C2) the other extent is a multiple of 16, and at most 256;
    - (C3) `stages` is in 2..8, `group` and `split_k` in 1..64, `warpgroups` in
      1..2;
    - (C4) `swap_ab` stores `direct`;
    - (C5) a thread has at most 128 sums.

    Example: `#fp8_mma.gemm<tile_m = 128, tile_n = 128, stages = 3, warpgroups = 2>`.
  }];
  let parameters = (ins
    "int64_t":$tile_m,
    "int64_t":$tile_n,
    "int64_t":$stages,
    DefaultValuedParameter<"int64_t", "8">:$group,
    DefaultValuedParameter<"int64_t", "1">:$split_k,
    DefaultValuedParameter<"bool", "false">:$swap_ab,
    Mma_GemmStoreParameter:$store,
    DefaultValuedParameter<"int64_t", "1">:$warpgroups,
    DefaultValuedParameter<"bool", "false">:$whole_chunks
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Extent of the tile on the instruction's M side.
    int64_t getRows() const { return getSwapAb() ? getTileN() : getTileM(); }
    /// Extent on its N side, in 16s.
    int64_t getCols() const { return getSwapAb() ? getTileM() : getTileN(); }
    int64_t getThreads() const { return 128 * getWarpgroups(); }
  }];
}

def Mma_AttentionConfigAttr : AttrDef<Mma_Dialect, "AttentionConfig",
    [DeclareAttrInterfaceMethods<FP8GPU_KernelConfigAttrInterface>]> {
  let mnemonic = "attention";
  let summary = "how a generated attention kernel is built";
  let description = [{
    Written by `fp8-select-kernels`, obeyed by `fp8-build-kernels`. A block
    computes tiles of queries, one after the other, a warp 16 of them; keys and
    values come in tiles through rings of shared memory. A block of the
    gradient's kernel has as many rows, which are keys or queries, and walks the
    others.

    | parameter | meaning |
    | --- | --- |
    | `tile_q` | queries of a tile, or rows: 64 or 128 |
    | `tile_k` | keys that share a step of the softmax, or columns of a step |
    | `stages` | tiles of keys, and as many of values, in shared memory |

    Constraints:
    - (C1) `tile_q` is 64 or 128;
    - (C2) `tile_k` is a multiple of 16 from 16 to 256, as many as a thread has
      registers for;
    - (C3) `stages` is in 2..8.

    Example: `#fp8_mma.attention<tile_q = 128, tile_k = 64, stages = 2>`.
  }];
  let parameters = (ins
    "int64_t":$tile_q,
    "int64_t":$tile_k,
    "int64_t":$stages
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getThreads() const { return 2 * getTileQ(); }
  }];
}

#endif // FP8_LIB_KERNELS_MMA_MMADIALECT_TD
