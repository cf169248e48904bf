//===- AttentionGenerator.cpp - Attention kernels for Hopper --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionGenerator.h"

#include "../Attention/AttentionGenerator.h"
#include "../Attention/AttentionParts.h"
#include "../MachineLookup.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
/// What Hopper's attention has of its own.
struct HopperAttention {
  using Spec = AttentionSpec;
  using Config = AttentionConfigAttr;
  using Memory = AttentionMemory;
  using Signature = AttentionSignature;
  static constexpr auto describe = describeAttention;
  static constexpr auto build = buildAttention;

  static SmallVector<Config> getTiles(const AttentionSpec &spec,
                                      MLIRContext *context);
  static double getCost(const AttentionSpec &spec, Config config,
                        GPUTargetAttr target);
  static Config getLeast(const AttentionSpec &spec, MLIRContext *context) {
    int64_t keys =
        spec.invariant ? spec.getInvariantKeys() : 32 / spec.getElementBytes();
    return Config::get(context, /*tile_q=*/64, keys,
                       /*stages=*/2, /*tile_heads=*/1, /*split_tiles=*/0,
                       /*polynomials=*/0, AttentionTurn::None,
                       AttentionMaxima::Tile);
  }
};
} // namespace

/// Whether promoted sums of short rows see all keys: long steps by turns are 9
/// % faster there than polynomials, and slower where keys are hidden.
static bool isNarrowPromotedWhole(const AttentionSpec &spec) {
  return spec.accumulate == Accumulate::Promote && spec.headDim <= 64 &&
         !spec.left && !spec.right;
}

/// Whether a turn with the maxima is faster: on an H200 of 64, 96 and 256
/// columns, with two shapes a run (benchmarks/results/attention.txt).
/// 16 bits with 64 columns are as fast without a window, and E4M3 with 256 is
/// slower without one. Heads of 128 to 192 columns are slower so, and what
/// fewer keys a tile or other work with scores changes was not timed.
static bool isRaised(const AttentionSpec &spec, int64_t tileQ) {
  if (spec.mask || spec.dropThreshold || spec.cap || spec.invariant ||
      spec.accumulate == Accumulate::Promote)
    return false;
  bool isShort = spec.getElementBytes() == 1;
  int64_t columns = std::max(spec.headDim, spec.headDimOfV);
  if (columns <= 64)
    return tileQ == 192 && (isShort || spec.hidesLast());
  if (columns <= 96)
    return tileQ == 128;
  return spec.headDimOfV > 192 && tileQ == 128 &&
         (!isShort || spec.hidesLast());
}

/// Whether rows raise their maxima only where powers outgrow their type: on an
/// H200 in bf16 9 to 14 % faster with 128 columns, 2 to 3 with 64, and 6 to 15
/// with others, but for 256 where all keys are seen. Codes outgrow theirs too
/// often, and are slower below 20000 keys. Other work with scores was not
/// timed.
static bool raisesOnOverflow(const AttentionSpec &spec) {
  bool fitsOneWarpgroup =
      !ShapedType::isDynamic(spec.queries) && spec.queries <= 64;
  // Short rows have three warpgroups over 96 keys, which no page has.
  bool cutsPages = spec.pageSize && spec.headDim <= 64;
  return spec.v.isBF16() && !fitsOneWarpgroup && !cutsPages &&
         spec.accumulate != Accumulate::Promote &&
         spec.headDimOfV <= spec.headDim &&
         (spec.headDimOfV <= 192 || spec.hidesLast()) && spec.factorOfP == 1 &&
         !spec.mask && !spec.cap && !spec.dropThreshold && !spec.invariant;
}

/// When the next warpgroup's turn is. Exponentials take 8-bit products' time,
/// and are best computed by one warpgroup at a time; 16-bit products take
/// longer, and there should be some under way.
static AttentionTurn getTurn(const AttentionSpec &spec, int64_t tileQ) {
  if (tileQ == 64)
    return AttentionTurn::None;
  if (raisesOnOverflow(spec))
    return AttentionTurn::Issued;
  if (isNarrowPromotedWhole(spec))
    return AttentionTurn::Scored;
  if (isRaised(spec, tileQ))
    return AttentionTurn::Raised;
  bool areShort = spec.getElementBytes() == 1 && spec.headDim >= 128 &&
                  spec.accumulate == Accumulate::Fast && tileQ == 128;
  return areShort ? AttentionTurn::Scored : AttentionTurn::Issued;
}

/// Exponentials of 16 that are polynomials. With promotion multiplications and
/// additions are the longest part, but the units that exponentiate have a
/// queue: 4 are 16 % faster at 128 columns on an H200, where 3 are 7 and 6
/// are 4. Without it none of these are.
static int64_t getPolynomials(const AttentionSpec &spec) {
  return spec.accumulate == Accumulate::Promote &&
                 !isNarrowPromotedWhole(spec) && !spec.invariant
             ? 4
             : 0;
}

SmallVector<AttentionConfigAttr>
HopperAttention::getTiles(const AttentionSpec &spec, MLIRContext *context) {
  int64_t step = 32 / spec.getElementBytes();
  SmallVector<Config> tiles;
  std::optional<int64_t> heads = spec.getHeadsOfFewQueries();
  for (int64_t tileK = 256; tileK >= step; tileK -= step) {
    for (int64_t stages = 4; heads && stages >= 2; --stages)
      tiles.push_back(Config::get(context, /*tile_q=*/64, tileK, stages, *heads,
                                  getSplitTiles(spec, tileK), /*polynomials=*/0,
                                  AttentionTurn::None, AttentionMaxima::Tile));
    for (int64_t tileQ : {128, 192, 64})
      tiles.push_back(Config::get(context, tileQ, tileK, /*stages=*/2,
                                  /*tile_heads=*/1, /*split_tiles=*/0,
                                  getPolynomials(spec), getTurn(spec, tileQ),
                                  raisesOnOverflow(spec)
                                      ? AttentionMaxima::Overflow
                                      : AttentionMaxima::Tile));
  }
  return tiles;
}

/// Queries and keys of a tile whose scores may be needed again, which leaves
/// fewer registers, and least where a batch or a query does not see all keys.
/// By an H200's times of 64, 96, 128, 160, 192 beside 128, and 256 columns; by
/// ptxas' spills of 192.
static std::pair<int64_t, int64_t>
getUsualTileOnOverflow(const AttentionSpec &spec) {
  bool seesAll = !spec.hidesFirst() && !spec.hidesLast() &&
                 !spec.hasKeyLengths && !spec.pageSize;
  if (spec.headDim <= 64)
    return {192, 96};
  if (spec.headDim <= 128)
    return {128, seesAll ? 144 : 128};
  if (spec.headDimOfV <= 160)
    return {128, 112};
  return {128, spec.headDimOfV <= 192 ? 96 : 64};
}

/// Measured on an H200, d of 64, 128 and 256 (docs/KernelMeasurements.md):
/// 128 queries, for short rows 192, and as many keys as make a step of the
/// softmax long, but leave registers for what is under way.
static std::pair<int64_t, int64_t> getUsualTile(const AttentionSpec &spec) {
  bool isNarrow = spec.headDim <= 64;
  if (spec.getElementBytes() == 1) {
    if (spec.accumulate == Accumulate::Promote)
      return {128, isNarrowPromotedWhole(spec) ? 160 : 128};
    return {isNarrow ? 192 : 128, isNarrow ? 160 : 192};
  }
  if (raisesOnOverflow(spec))
    return getUsualTileOnOverflow(spec);
  // Wide rows of sums leave few registers.
  if (spec.headDimOfV > 192)
    return {128, 80};
  // What a window hides of a tile is computed all the same, which counts where
  // there are few of them.
  bool hidesMuch = (spec.left || spec.right) &&
                   !ShapedType::isDynamic(spec.keys) && spec.keys <= 8192;
  return {isNarrow ? 192 : 128, isNarrow || hidesMuch ? 128 : 160};
}

/// The same with dropout, whose words take registers beside the scores: fewer
/// keys, for which ptxas does not spill, were the fastest on an H200.
static std::pair<int64_t, int64_t>
getUsualTileWithDropout(const AttentionSpec &spec) {
  if (spec.headDimOfV > 192)
    return {128, 48};
  if (spec.getElementBytes() == 1)
    return {128, spec.accumulate == Accumulate::Promote ? 64 : 128};
  return {128, spec.headDim <= 64 ? 128 : 96};
}

/// The same with a mask, whose elements do as well.
static std::pair<int64_t, int64_t>
getUsualTileWithMask(const AttentionSpec &spec) {
  if (spec.dropThreshold)
    return getUsualTileWithDropout(spec);
  auto [queries, keys] = getUsualTile(spec);
  if (!spec.mask || spec.headDim <= 64)
    return {queries, keys};
  if (spec.getElementBytes() == 1)
    return {queries, spec.accumulate == Accumulate::Promote ? 96 : 160};
  return {queries, spec.headDimOfV > 192 ? 48 : 112};
}

/// By how far a tile is from what its machine says is the fastest.
static double getCostOfFewQueries(const AttentionSpec &spec,
                                  AttentionConfigAttr tile,
                                  GPUTargetAttr target) {
  if (!tile.isForFewQueries())
    return 1000 + tile.getTileQ();
  std::string reason;
  FailureOr<AttentionMemory> memory =
      AttentionMemory::get(spec, tile, target, reason);
  if (failed(memory))
    return std::numeric_limits<double>::infinity();
  AttentionModelAttr model = getAttentionModel(target);
  double usual =
      spec.getElementBytes() == 1 ? model.getTile_8() : model.getTile_16();
  int64_t bytes = tile.getTileK() * spec.getElementBytes() *
                  (spec.headDim + spec.headDimOfV);
  double missing = double(model.getUnderWay()) -
                   double(bytes) * tile.getStages() * memory->resident;
  return model.getBlock() * (2 - memory->resident) +
         std::abs(double(bytes) - usual) / model.getTileStep() +
         std::max(0.0, missing) / model.getUnderWayStep();
}

double HopperAttention::getCost(const AttentionSpec &spec, Config config,
                                GPUTargetAttr target) {
  if (spec.getHeadsOfFewQueries())
    return getCostOfFewQueries(spec, config, target);
  auto [queries, keys] = getUsualTileWithMask(spec);
  // A block of fewer queries reads keys more often; the last tile of few
  // queries is not worth more.
  if (config.isForFewQueries())
    return std::numeric_limits<double>::infinity();
  double cost = std::abs(double(queries - config.getTileQ())) / 64;
  if (!ShapedType::isDynamic(spec.queries) && spec.queries <= 64)
    cost = double(config.getTileQ()) / 64;
  return cost * 4 + std::abs(double(keys - config.getTileK())) / 64;
}

std::unique_ptr<KernelGenerator> sm90::createAttentionGenerator() {
  return std::make_unique<AttentionGenerator<HopperAttention>>();
}
