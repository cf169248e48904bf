//===- SM100Dialect.td - Configs of Blackwell's kernels ----*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_SM100DIALECT_TD
#define FP8_LIB_KERNELS_SM100_SM100DIALECT_TD

include "fp8/GPU/IR/FP8GPUInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def SM100_Dialect : Dialect {
  let name = "fp8_sm100";
  let cppNamespace = "::mlir::fp8::sm100";
  let summary = "how kernels for Blackwell GPUs are built";
  let description = [{
    The configs of the kernels for Blackwell (`sm_100a`): what
    `fp8-select-kernels` decides and `fp8-tune` measures. An attribute for each
    kind of kernels.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

class SM100_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::fp8::sm100";
  let genSpecializedAttr = 0;
}

def SM100_GemmStore : SM100_Enum<"GemmStore",
    "how results reach memory: bulk tensor copies, or a predicated store each", [
  I32EnumAttrCase<"TMA", 0, "tma">,
  I32EnumAttrCase<"Direct", 1, "direct">]>;

class SM100_EnumParameter<EnumInfo info, string default> : EnumParameter<info> {
  let defaultValue = default;
}

def SM100_GemmConfigAttr : AttrDef<SM100_Dialect, "GemmConfig",
    [DeclareAttrInterfaceMethods<FP8GPU_KernelConfigAttrInterface>]> {
  let mnemonic = "gemm";
  let summary = "how a generated matmul kernel is built";
  let description = [{
    Written by `fp8-select-kernels`, obeyed by `fp8-build-kernels`. K is walked
    in blocks of 128 bytes, the width of a swizzle atom. A tile's sums are in
    tensor memory, 128 lanes by as many columns, in two sets, which share columns
    where factors leave no room for both; those that are promoted in registers
    are there block by block of K, in two to four.

    | parameter | meaning |
    | --- | --- |
    | `tile_m`, `tile_n` | extents of an output tile |
    | `stages` | stages of the ring between the warp that loads and the one that multiplies |
    | `group` | tiles along M that are walked before the next one along N, for reuse in L2 |
    | `split_k` | parts of K that are summed in different blocks, in f32 and in a fixed order |
    | `swap_ab` | computes the transposed product, so that a small M takes the side of the tensor core that shrinks to 16 |
    | `store` | `tma`, for results whose rows are multiples of 16 bytes, or `direct` |
    | `staging` | buffers of a warpgroup from which bulk copies store, 1 or 2: one is filled while the other is read |
    | `epilogue_warpgroups` | warpgroups that take sums from tensor memory, 1 or 2, in turn; where they promote them, each its own columns |
    | `cta_group` | 1, or 2 blocks of a cluster whose tensor cores multiply a tile together: each brings half of either operand, and has half of the rows |

    Constraints:
    - (C1) the extent that the tensor core takes as rows (`tile_m`, with
      `swap_ab` `tile_n`) is 128 for each of `cta_group`;
    - (C2) the other extent is a multiple of 16, of two blocks of 32, and at
      most 256;
    - (C3) `stages` is in 2..16, `group` in 1..64, `split_k` in 1..64, `staging`,
      `epilogue_warpgroups` and `cta_group` in 1..2;
    - (C4) `swap_ab` stores `direct`;
    - (C5) `split_k` goes with one of `epilogue_warpgroups` and of `cta_group`, and with at most 64 columns,
      which a thread adds up together.

    Example: `#fp8_sm100.gemm<tile_m = 128, tile_n = 256, stages = 4>`.
  }];
  let parameters = (ins
    "int64_t":$tile_m,
    "int64_t":$tile_n,
    "int64_t":$stages,
    DefaultValuedParameter<"int64_t", "16">:$group,
    DefaultValuedParameter<"int64_t", "1">:$split_k,
    DefaultValuedParameter<"bool", "false">:$swap_ab,
    SM100_EnumParameter<SM100_GemmStore, "::mlir::fp8::sm100::GemmStore::TMA">:$store,
    DefaultValuedParameter<"int64_t", "2">:$staging,
    DefaultValuedParameter<"int64_t", "1">:$epilogue_warpgroups,
    DefaultValuedParameter<"int64_t", "1">:$cta_group
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Extent of the tile on the tensor core's M side.
    int64_t getRows() const { return getSwapAb() ? getTileN() : getTileM(); }
    /// Extent on its N side, in 16s.
    int64_t getCols() const { return getSwapAb() ? getTileM() : getTileN(); }
    /// Rows that a block of `cta_group` has of it, and columns that it brings.
    int64_t getBlockRows() const { return getRows() / getCtaGroup(); }
    int64_t getBlockCols() const { return getCols() / getCtaGroup(); }
    bool isCTAPair() const { return getCtaGroup() == 2; }
  }];
}

def SM100_AttentionConfigAttr : AttrDef<SM100_Dialect, "AttentionConfig",
    [DeclareAttrInterfaceMethods<FP8GPU_KernelConfigAttrInterface>]> {
  let mnemonic = "attention";
  let summary = "how a generated attention kernel is built";
  let description = [{
    Written by `fp8-select-kernels`, obeyed by `fp8-build-kernels`. A block
    computes tiles of queries, one after the other; keys and values come in
    tiles through rings of shared memory. Scores and sums of 128 queries are in
    tensor memory, a query a lane.

    | parameter | meaning |
    | --- | --- |
    | `tile_q` | queries of a tile: 128, or twice as many, whose halves take turns at the tensor core, with a warpgroup each |
    | `tile_k` | keys that share a step of the softmax |
    | `stages` | tiles of keys, and as many of values, in shared memory |
    | `polynomials` | exponentials, of each 16, that are polynomials of degree 3, exact to 1e-4, which other units compute than the rest |
    | `tile_heads` | heads of Q that read the same head of K and share a tile of few queries: row r, of 32, is head `r mod tile_heads` of query `r / tile_heads` |
    | `split_tiles` | for few queries, which fit into one tile: blocks share all tiles' keys evenly, so many tiles of keys each at least; of those that share a tile the last one puts the results together, in their order. 0: a block has whole tiles |

    Constraints:
    - (C1) `tile_q` is 128 or 256;
    - (C2) `tile_k` is a multiple of 16 from 16 to 128, as many as a thread has
      registers for;
    - (C3) `stages` is in 1..8;
    - (C4) `polynomials` is in 0..16;
    - (C5) `split_tiles` is in 0..1024, and is 0 unless `tile_q` is 128 and
      `tile_k` a multiple of 64;
    - (C6) `tile_heads` is a power of two from 1 to 32, and is 1 unless
      `split_tiles` is positive.

    Example: `#fp8_sm100.attention<tile_q = 256, tile_k = 128, stages = 2>`.
  }];
  let parameters = (ins
    "int64_t":$tile_q,
    "int64_t":$tile_k,
    "int64_t":$stages,
    DefaultValuedParameter<"int64_t", "0">:$polynomials,
    DefaultValuedParameter<"int64_t", "1">:$tile_heads,
    DefaultValuedParameter<"int64_t", "0">:$split_tiles
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Warpgroups that exponentiate, each 128 queries.
    int64_t getHalves() const { return getTileQ() / 128; }
    /// Whether the tile is for few queries: each of four warps has all rows,
    /// and a quarter of each tile of keys.
    bool isForFewQueries() const { return getSplitTiles() > 0; }
    /// Rows of a tile, of all heads that share it, and queries.
    int64_t getRows() const { return isForFewQueries() ? 32 : getTileQ(); }
    int64_t getQueriesOfTile() const { return getRows() / getTileHeads(); }
  }];
}

#endif // FP8_LIB_KERNELS_SM100_SM100DIALECT_TD
