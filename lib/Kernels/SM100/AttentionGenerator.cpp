//===- AttentionGenerator.cpp - Attention kernels for Blackwell -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionGenerator.h"
#include "../Attention/AttentionGenerator.h"
#include "../Attention/AttentionParts.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

namespace {
/// What Blackwell's attention has of its own. Sums of codes have as many bits
/// as those of numbers: none are promoted.
struct BlackwellAttention {
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
        spec.invariant ? kInvariantKeys : 32 / spec.getElementBytes();
    return Config::get(context, kQueries, keys, /*stages=*/1,
                       /*polynomials=*/0, /*tile_heads=*/1, /*split_tiles=*/0);
  }
};
} // namespace

/// Exponentials of 16 that are polynomials. 128 x 128 codes of 128 columns are
/// multiplied twice in 512 clocks, and exponentiated in 1024, by the rates of a
/// B200 (NVIDIA, "CUDA C++ Programming Guide", arithmetic throughput). Not
/// measured; numbers of 16 bits have as long products, and keep exact powers.
static int64_t getPolynomials(const AttentionSpec &spec) {
  return spec.getElementBytes() == 1 && !spec.invariant ? 4 : 0;
}

/// Heads of Q that a tile of few queries has room for if all queries fit into
/// one with them: a warp has all rows.
static std::optional<int64_t> getHeadsOfFewRows(const AttentionSpec &spec) {
  std::optional<int64_t> heads = spec.getHeadsOfFewQueries();
  if (!heads || spec.invariant || spec.queries > 32)
    return std::nullopt;
  return std::min(*heads, static_cast<int64_t>(llvm::bit_floor(
                              static_cast<uint64_t>(32 / spec.queries))));
}

SmallVector<AttentionConfigAttr>
BlackwellAttention::getTiles(const AttentionSpec &spec, MLIRContext *context) {
  SmallVector<Config> tiles;
  if (std::optional<int64_t> heads = getHeadsOfFewRows(spec))
    for (int64_t tileK : {128, 64})
      for (int64_t stages : {8, 6, 4, 3, 2})
        tiles.push_back(Config::get(context, kQueries, tileK, stages,
                                    /*polynomials=*/0, *heads,
                                    getSplitTiles(spec, tileK)));
  for (int64_t tileQ : {256, 128})
    for (int64_t tileK : {128, 96, 64, 32, 16})
      for (int64_t stages : {4, 3, 2, 1})
        tiles.push_back(Config::get(context, tileQ, tileK, stages,
                                    getPolynomials(spec),
                                    /*tile_heads=*/1, /*split_tiles=*/0));
  return tiles;
}

/// Two blocks of a multiprocessor, one of which exponentiates while the other
/// one multiplies, and then as many bytes under way as memory takes to answer,
/// by its datasheet (8 TB/s and 148 multiprocessors, of some 2 us). Not
/// measured.
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
  constexpr double kUnderWay = 112 * 1024;
  auto bytes = double(tile.getTileK() * spec.getElementBytes() *
                      (spec.headDim + spec.headDimOfV) * tile.getStages());
  double missing = kUnderWay - bytes * double(memory->resident);
  return 4.0 * double(2 - memory->resident) +
         std::max(0.0, missing) / (32 * 1024) +
         0.1 * (double(128 - tile.getTileK()) / 64) +
         0.01 * double(tile.getStages());
}

/// Twice 128 queries, of which one half is exponentiated while the other one is
/// multiplied, unless there are no more than 128; then as many keys as there is
/// room for, and two stages of them or more. Elements of a mask, what bends
/// scores, words of dropout, and what says which keys there are take registers
/// beside these.
double BlackwellAttention::getCost(const AttentionSpec &spec, Config config,
                                   GPUTargetAttr target) {
  if (getHeadsOfFewRows(spec))
    return getCostOfFewQueries(spec, config, target);
  if (config.isForFewQueries())
    return std::numeric_limits<double>::infinity();
  bool isSmall =
      !ShapedType::isDynamic(spec.queries) && spec.queries <= kQueries;
  bool isUsual = config.getTileQ() == (isSmall ? kQueries : 2 * kQueries);
  bool hasOwnKeys =
      spec.hasKeyLengths || spec.hasKeyStarts || spec.hasKeyRanges;
  int64_t keys = spec.mask || spec.cap || spec.dropThreshold ? 64
                 : hasOwnKeys                                ? 96
                                                             : 128;
  double missingKeys = std::abs(double(keys - config.getTileK())) / 128;
  return (isUsual ? 0 : 8) + missingKeys +
         (config.getStages() == 1 ? 0.5 : 0.0) + 0.01 / config.getStages();
}

std::unique_ptr<KernelGenerator> sm100::createAttentionGenerator() {
  return std::make_unique<AttentionGenerator<BlackwellAttention>>();
}
