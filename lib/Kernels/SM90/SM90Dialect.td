//===- SM90Dialect.td - Configs of Hopper's kernels --------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_SM90DIALECT_TD
#define FP8_LIB_KERNELS_SM90_SM90DIALECT_TD

include "fp8/GPU/IR/FP8GPUInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def SM90_Dialect : Dialect {
  let name = "fp8_sm90";
  let cppNamespace = "::mlir::fp8::sm90";
  let summary = "how kernels for Hopper GPUs are built";
  let description = [{
    The configs of the kernels for Hopper (`sm_90a`): what `fp8-select-kernels`
    decides and `fp8-tune` measures. An attribute for each kind of kernels.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

class SM90_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::fp8::sm90";
  let genSpecializedAttr = 0;
}

def SM90_GemmSchedule : SM90_Enum<"GemmSchedule",
    "how consumer warpgroups share output tiles: all work on one, or one each in turn", [
  I32EnumAttrCase<"Cooperative", 0, "cooperative">,
  I32EnumAttrCase<"PingPong", 1, "ping_pong">]>;

def SM90_GemmStore : SM90_Enum<"GemmStore",
    "how results reach memory: bulk tensor copies, or a predicated store each", [
  I32EnumAttrCase<"TMA", 0, "tma">,
  I32EnumAttrCase<"Direct", 1, "direct">]>;

def SM90_GemmEpilogue : SM90_Enum<"GemmEpilogue",
    "code of the epilogue: a copy for each subtile of a tile, or one in a loop", [
  I32EnumAttrCase<"Unrolled", 0, "unrolled">,
  I32EnumAttrCase<"Looped", 1, "looped">]>;

class SM90_EnumParameter<EnumInfo info, string default> : EnumParameter<info> {
  let defaultValue = default;
}

def SM90_GemmConfigAttr : AttrDef<SM90_Dialect, "GemmConfig",
    [DeclareAttrInterfaceMethods<FP8GPU_KernelConfigAttrInterface>]> {
  let mnemonic = "gemm";
  let summary = "how a generated matmul kernel is built";
  let description = [{
    Written by `fp8-select-kernels`, obeyed by `fp8-build-kernels`. K is walked
    in blocks of 128 bytes, the width of a swizzle atom.

    | parameter | meaning |
    | --- | --- |
    | `tile_m`, `tile_n` | extents of an output tile |
    | `stages` | stages of the ring between the TMA producer and the consumers |
    | `consumers` | consumer warpgroups, beside one producer warpgroup; two to five of a tile that has 64 rows of the tensor core's sum parts of K, which are added up in a fixed order |
    | `schedule` | `cooperative`: they share a tile; `ping_pong`: two of them take tiles in turn, one multiplies while the other stores |
    | `group` | tiles along M that are walked before the next one along N, for reuse in L2 |
    | `split_k` | parts of K that are summed in different blocks, in f32 and in a fixed order |
    | `swap_ab` | computes the transposed product, so that a small M takes the side of the tensor core that shrinks to 8 |
    | `store` | `tma`, for results whose rows are multiples of 16 bytes, or `direct`; with `swap_ab`, `tma` is for 16 bits, which are transposed in shared memory |
    | `cluster_m` | blocks of a cluster that are neighbours along M: each brings its part of the tile of B for all; one brings it whole where parts would be less than a swizzle atom |
    | `cluster_n` | blocks of a cluster that are neighbours along N: each brings its part of the tile of A |
    | `staging` | buffers of a consumer from which bulk copies store, up to 4: one is filled while another is read; where all of a tile of several subtiles has room, each subtile is stored at once |
    | `pending` | K blocks whose products may be under way, 0 or 1, while the next one is waited for; without promotion |
    | `overlap` | with promotion: the tensor core computes a K block while the one before is added, in a second set of accumulators |
    | `epilogue` | `unrolled`, or `looped`: the subtiles of a tile share its code, where that would not fit the instruction cache |
    | `lifters` | warpgroups that make E4M3, or bf16, of packed weights in shared memory; 0 where consumers make bf16 of codes with factors of a byte in registers, or transpose codes of 8 bits there |
    | `lift_warps` | warps of these that share a stage; others have the next ones meanwhile, of `stages` that are a multiple of how many take turns |
    | `stage_blocks` | K blocks of a stage: rows of packed codes are copied as long as they are wide, which cost as much if they are short; `split_k` and consumers divide K in stages |
    | `cluster_k` | the blocks that have a tile's parts of K are a cluster, whose first one adds them up in its shared memory; the last one does otherwise, from memory |

    Constraints:
    - (C1) the extent that the tensor core takes in 64s (`tile_m`, with
      `swap_ab` `tile_n`) is a multiple of 64 for every consumer that shares a
      tile, and at most 256, or with `swap_ab` 64 where they share K;
    - (C2) the other extent is a multiple of 8, and at most 256;
    - (C3) `stages` is in 2..32, `consumers` in 1..3, or with `swap_ab` and
      a `tile_n` of 64 in 1..5, of 256 in 1..4, `group` in 1..64,
      `split_k` in 1..64, `staging` in 1..4, `pending` in 0..1,
      `lifters` in 0..2, `lift_warps` 1, 2, 4 or 8 and at most four for each of
      `lifters`, or 4 without any;
    - (C4) `ping_pong` has 2 consumers and neither `split_k` nor `swap_ab`;
    - (C5) `ping_pong` goes with `lifters`;
    - (C6) `cluster_m` and `cluster_n` are 1, 2 or 4, and their product is at
      most 8;
    - (C7) `pending` and `overlap` go without `split_k`, and `overlap` with one
      subtile: a tile of 64 rows for each consumer that shares it;
    - (C8) `stage_blocks` is 1, or with `swap_ab` and `lifters = 0` 2 or 4;
    - (C9) `cluster_k` goes with a `split_k` of 2, 4 or 8, and with neither
      `cluster_m` nor `cluster_n`.

    Example: `#fp8_sm90.gemm<tile_m = 128, tile_n = 256, stages = 4>`.
  }];
  let parameters = (ins
    "int64_t":$tile_m,
    "int64_t":$tile_n,
    "int64_t":$stages,
    DefaultValuedParameter<"int64_t", "2">:$consumers,
    SM90_EnumParameter<SM90_GemmSchedule, "::mlir::fp8::sm90::GemmSchedule::Cooperative">:$schedule,
    DefaultValuedParameter<"int64_t", "16">:$group,
    DefaultValuedParameter<"int64_t", "1">:$split_k,
    DefaultValuedParameter<"bool", "false">:$swap_ab,
    SM90_EnumParameter<SM90_GemmStore, "::mlir::fp8::sm90::GemmStore::TMA">:$store,
    DefaultValuedParameter<"int64_t", "1">:$cluster_m,
    DefaultValuedParameter<"int64_t", "1">:$cluster_n,
    DefaultValuedParameter<"int64_t", "2">:$staging,
    DefaultValuedParameter<"int64_t", "0">:$pending,
    DefaultValuedParameter<"bool", "false">:$overlap,
    SM90_EnumParameter<SM90_GemmEpilogue, "::mlir::fp8::sm90::GemmEpilogue::Unrolled">:$epilogue,
    DefaultValuedParameter<"int64_t", "1">:$lifters,
    DefaultValuedParameter<"int64_t", "4">:$lift_warps,
    DefaultValuedParameter<"int64_t", "1">:$stage_blocks,
    DefaultValuedParameter<"bool", "false">:$cluster_k
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kMaxStaging = 4;

    /// Extent of the tile on the tensor core's M side, in 64s.
    int64_t getRows() const { return getSwapAb() ? getTileN() : getTileM(); }
    /// Extent on its N side, in 8s.
    int64_t getCols() const { return getSwapAb() ? getTileM() : getTileN(); }
    /// Parts of K that a block sums, a consumer each.
    int64_t getBlockParts() const {
      bool takesTurns = getSchedule() == GemmSchedule::PingPong;
      return !takesTurns && getRows() == 64 ? getConsumers() : 1;
    }
    /// All of them, which are summed by themselves.
    int64_t getPartsOfK() const { return getSplitK() * getBlockParts(); }
    /// Consumer warpgroups that share each K block of a tile.
    int64_t getSharers() const {
      return getSchedule() == GemmSchedule::PingPong
                 ? 1
                 : getConsumers() / getBlockParts();
    }
    /// 64-row slices of the tile that one consumer computes.
    int64_t getSubtiles() const { return getRows() / (64 * getSharers()); }
    /// Blocks of a cluster that compute tiles beside each other, and all.
    int64_t getClusterSize() const { return getClusterM() * getClusterN(); }
    int64_t getClusterBlocks() const {
      return getClusterSize() * (getClusterK() ? getSplitK() : 1);
    }
    /// Its neighbours along the tensor core's M side, and along its N side.
    int64_t getClusterRows() const {
      return getSwapAb() ? getClusterN() : getClusterM();
    }
    int64_t getClusterCols() const {
      return getSwapAb() ? getClusterM() : getClusterN();
    }
    /// Extents of the result that a cluster computes at a time.
    int64_t getClusterTileM() const { return getTileM() * getClusterM(); }
    int64_t getClusterTileN() const { return getTileN() * getClusterN(); }
  }];
}

def SM90_AttentionTurn : SM90_Enum<"AttentionTurn",
    "when a warpgroup lets the next one issue its products: never waited for, once its own are issued, once its scores are there, or once it has raised the maxima of its rows", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"Issued", 1, "issued">,
  I32EnumAttrCase<"Scored", 2, "scored">,
  I32EnumAttrCase<"Raised", 3, "raised">]>;

def SM90_AttentionMaxima : SM90_Enum<"AttentionMaxima",
    "when rows raise their maxima: for each tile of keys before its powers, or once a power is too large", [
  I32EnumAttrCase<"Tile", 0, "tile">,
  I32EnumAttrCase<"Overflow", 1, "overflow">]>;

def SM90_AttentionConfigAttr : AttrDef<SM90_Dialect, "AttentionConfig",
    [DeclareAttrInterfaceMethods<FP8GPU_KernelConfigAttrInterface>]> {
  let mnemonic = "attention";
  let summary = "how a generated attention kernel is built";
  let description = [{
    Written by `fp8-select-kernels`, obeyed by `fp8-build-kernels`. A block
    computes tiles of queries, one after the other; keys and values come in
    tiles through rings of shared memory.

    | parameter | meaning |
    | --- | --- |
    | `tile_q` | queries of a tile: 64 for each consumer warpgroup |
    | `tile_k` | keys that share a step of the softmax |
    | `stages` | tiles of keys, and as many of values, in shared memory |
    | `tile_heads` | heads of Q that read the same head of K and share a tile: row r is head `r mod tile_heads` of query `r / tile_heads` |
    | `split_tiles` | for few queries, which fit into one tile: blocks share all tiles' keys evenly, so many tiles of keys each at least; of those that share a tile the last one puts the results together, in their order. 0: a block has whole tiles |
    | `polynomials` | exponentials, of each 16, that are polynomials of degree 3, exact to 1e-4, which other units compute than the rest |
    | `maxima` | rows raise their maxima for each `tile` of keys, before its powers; or with `overflow` only where a power is too large by those before, and compute the powers of that tile once more: one that rounds to the largest code, or to 2 in 16 bits |
    | `turn` | consumers issue the products of a tile of keys in turn: each once the one before has `issued` its own, or has its scores, `scored`, so that they exponentiate at different times, or has the maxima of these, `raised`, and all its exponentials behind it; `none`: whenever they can |

    Constraints:
    - (C1) `tile_q` is 64, 128 or 192;
    - (C2) `tile_k` is a multiple of 16 from 16 to 256;
    - (C3) `stages` is in 1..8;
    - (C4) `split_tiles` is in 0..1024, and is 0 unless `tile_q` is 64;
    - (C5) `tile_heads` is a power of two from 1 to 64, and is 1 unless
      `split_tiles` is positive;
    - (C6) `polynomials` is in 0..16;
    - (C7) `maxima` is `tile` if `turn` is `raised` or `split_tiles` is positive.

    Example: `#fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2>`.
  }];
  let parameters = (ins
    "int64_t":$tile_q,
    "int64_t":$tile_k,
    "int64_t":$stages,
    DefaultValuedParameter<"int64_t", "1">:$tile_heads,
    DefaultValuedParameter<"int64_t", "0">:$split_tiles,
    DefaultValuedParameter<"int64_t", "0">:$polynomials,
    SM90_EnumParameter<SM90_AttentionTurn, "::mlir::fp8::sm90::AttentionTurn::Issued">:$turn,
    SM90_EnumParameter<SM90_AttentionMaxima, "::mlir::fp8::sm90::AttentionMaxima::Tile">:$maxima
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Warpgroups that multiply, each 64 queries.
    int64_t getConsumers() const { return getTileQ() / 64; }
    /// Whether the tile is for few queries: its rows are copied and stored by
    /// the threads that compute them.
    bool isForFewQueries() const { return getSplitTiles() > 0; }
    int64_t getQueriesOfTile() const { return getTileQ() / getTileHeads(); }
    /// Whether powers are computed with a zero that is loaded behind the turn,
    /// so that ptxas does not give that after them.
    bool loadsZero() const {
      return getTurn() == AttentionTurn::Raised ||
             (getTurn() == AttentionTurn::Scored &&
              getMaxima() == AttentionMaxima::Overflow);
    }
  }];
}

#endif // FP8_LIB_KERNELS_SM90_SM90DIALECT_TD
