//===- MatmulHeuristics.cpp - Choice of configs of matmuls ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Which configs, and the choice among them. The shares and energies are
// measured on an H200 (132 multiprocessors, 227 KiB of shared memory); see
// docs/Kernels.md, "Selection".

#include "MatmulGenerator.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// A tile that the tensor core takes as it is.
struct TileConfig {
  int64_t tileM, tileN, stages, consumers;
  GemmSchedule schedule;
  /// What its main loop reaches of the tensor core's rate.
  double share;
  /// What a product takes, beside the best of the table.
  double energy;
  /// Blocks that share what they read of B, and of A.
  int64_t cluster = 1, clusterCols = 1;
};

/// One of 64 columns that it takes as rows: for small M.
struct SwappedConfig {
  int64_t tileM, stages, mostParts;
  double share, promotedShare, energy;
};
} // namespace

static constexpr auto kCooperative = GemmSchedule::Cooperative;
static constexpr auto kPingPong = GemmSchedule::PingPong;

/// With ping-pong, storing a tile costs the tensor core nothing. The many
/// widths are for results that they cut evenly among the multiprocessors, low
/// tiles for small M.
static constexpr TileConfig kFast[] = {
    {128, 128, 6, 2, kPingPong, 0.559, 1.126},
    {128, 128, 6, 2, kPingPong, 0.559, 1.157, 2},
    {128, 176, 5, 2, kPingPong, 0.560, 1.050},
    {128, 176, 5, 2, kPingPong, 0.560, 1.103, 2},
    {128, 192, 4, 2, kPingPong, 0.559, 1.024},
    {128, 168, 5, 2, kPingPong, 0.556, 1.060},
    {128, 160, 5, 2, kPingPong, 0.557, 1.076},
    {128, 144, 6, 2, kPingPong, 0.565, 1.108},
    {128, 112, 6, 2, kPingPong, 0.564, 1.285},
    {128, 96, 7, 2, kPingPong, 0.563, 1.309},
    {128, 96, 7, 2, kPingPong, 0.563, 1.275, 2},
    {64, 256, 4, 2, kPingPong, 0.541, 1.131},
    {64, 224, 5, 2, kPingPong, 0.533, 1.187},
    {64, 128, 8, 2, kPingPong, 0.530, 1.443},
    {64, 128, 8, 2, kPingPong, 0.530, 1.411, 2},
    {64, 112, 8, 2, kPingPong, 0.503, 1.498},
    {64, 112, 8, 2, kPingPong, 0.503, 1.503, 2},
    {64, 96, 9, 2, kPingPong, 0.488, 1.702},
    {64, 96, 9, 2, kPingPong, 0.488, 1.532, 2},
    {64, 80, 10, 2, kPingPong, 0.418, 1.814},
    {128, 256, 3, 2, kCooperative, 0.545, 1.002},
    {128, 256, 4, 2, kCooperative, 0.545, 1.040},
    {128, 224, 4, 2, kCooperative, 0.544, 1.064},
    {128, 224, 4, 2, kCooperative, 0.544, 1.048, 2},
    {128, 192, 4, 2, kCooperative, 0.557, 1.071},
    {128, 192, 4, 2, kCooperative, 0.557, 1.083, 2},
    {128, 176, 5, 2, kCooperative, 0.557, 1.085},
    {128, 176, 5, 2, kCooperative, 0.557, 1.108, 2},
    {128, 160, 5, 2, kCooperative, 0.560, 1.125},
    {128, 128, 6, 2, kCooperative, 0.568, 1.239},
    {128, 96, 7, 2, kCooperative, 0.558, 1.342},
    {128, 80, 8, 2, kCooperative, 0.558, 1.589},
    {64, 64, 12, 1, kCooperative, 0.434, 1.777, 2},
    {64, 32, 16, 1, kCooperative, 0.605, 2.647},
};

/// Promotion needs a second set of accumulators, so that waves are narrower.
static constexpr TileConfig kPromoted[] = {
    {128, 128, 5, 2, kCooperative, 0.613, 1.121},
    {128, 128, 5, 2, kCooperative, 0.613, 1.092, 2},
    {128, 128, 5, 2, kCooperative, 0.613, 1.083, 1, 2},
    {192, 128, 4, 3, kCooperative, 0.606, 1.097},
    {192, 128, 4, 3, kCooperative, 0.606, 1.035, 1, 2},
    {128, 192, 4, 2, kCooperative, 0.584, 1.013},
    {128, 192, 4, 2, kCooperative, 0.584, 1.021, 2},
    {128, 176, 4, 2, kCooperative, 0.586, 1.045},
    {256, 128, 4, 2, kCooperative, 0.572, 1.046},
    {256, 128, 4, 2, kCooperative, 0.572, 1.000, 1, 2},
    {128, 96, 7, 2, kCooperative, 0.586, 1.318},
    {64, 128, 8, 2, kPingPong, 0.595, 1.227},
    {64, 128, 8, 1, kCooperative, 0.530, 1.219},
    {64, 64, 12, 1, kCooperative, 0.381, 1.617},
};

/// Factors along K: three consumers, or two sets of rows in turn, hide the
/// additions behind the tensor core.
static constexpr TileConfig kBlockScaled[] = {
    {192, 128, 4, 3, kCooperative, 0.645, 1.113},
    {256, 128, 4, 2, kCooperative, 0.632, 1.063},
    {256, 128, 4, 2, kCooperative, 0.632, 1.033, 2},
    {256, 128, 4, 2, kCooperative, 0.632, 1.000, 1, 2},
    {128, 128, 5, 2, kCooperative, 0.570, 1.164},
    {128, 128, 5, 2, kCooperative, 0.570, 1.128, 1, 2},
    {64, 128, 8, 1, kCooperative, 0.460, 1.423},
    {64, 128, 8, 2, kPingPong, 0.464, 1.278},
    {64, 64, 12, 1, kCooperative, 0.305, 1.690},
};

/// Of columns, too: two sets of rows share what a thread loads of these. Their
/// energies are not measured, but those of tiles like them in the table above
/// beside that of its 256 x 128 of one block.
static constexpr TileConfig kBlockScaledBoth[] = {
    {256, 112, 4, 2, kCooperative, 0.515, 1.000},
    {256, 96, 4, 2, kCooperative, 0.503, 1.050},
    {128, 128, 5, 2, kCooperative, 0.475, 1.095},
    {64, 128, 8, 1, kCooperative, 0.460, 1.340},
    {64, 64, 12, 1, kCooperative, 0.381, 1.590},
};

/// Small M on the side of the tensor core that comes in 8s. Energies are not
/// measured: those of tiles in the first table with as many bytes for a
/// product, and beyond its narrowest guesses, which only M <= 32 would ask for.
static constexpr SwappedConfig kSwapped[] = {
    {8, 12, 8, 0.431, 0.300, 4.5},    {16, 12, 8, 0.431, 0.300, 3.5},
    {32, 12, 8, 0.431, 0.300, 2.647}, {64, 10, 4, 0.431, 0.300, 1.777},
    {128, 8, 2, 0.635, 0.485, 1.443},
};

/// The largest M for which swapped operands, or clusters, are worth a thought.
static constexpr int64_t kMostSwapped = 256;
static constexpr int64_t kMostClustered = 512;

/// Of matmuls in high precision, how many configs may be the best.
static constexpr size_t kMostCandidates = 24;

/// Instructions of an epilogue, as MatmulSpec counts them, beyond which waves
/// share its code. Some 2000 that remain fit the instruction cache; what does
/// not issues at half the rate. Below, moving the sums costs more than that.
static constexpr int64_t kMostUnrolled = 3200;

//===----------------------------------------------------------------------===//
// Configs
//===----------------------------------------------------------------------===//

/// Rows of the result must be multiples of 16 bytes for bulk copies.
static GemmStore getStore(const MatmulSpec &spec) {
  return spec.canStoreInBulk() ? GemmStore::TMA : GemmStore::Direct;
}

static bool isFitting(const MatmulSpec &spec, GemmConfigAttr config,
                      GPUTargetAttr target) {
  std::string reason;
  return succeeded(MatmulLayout::get(spec, config, target, reason));
}

/// `config` with other decisions of its schedule.
static GemmConfigAttr withSchedule(GemmConfigAttr config, int64_t group,
                                   int64_t staging, int64_t pending,
                                   bool overlap, GemmEpilogue epilogue) {
  return GemmConfigAttr::get(
      config.getContext(), config.getTileM(), config.getTileN(),
      config.getStages(), config.getConsumers(), config.getSchedule(), group,
      config.getSplitK(), config.getSwapAb(), config.getStore(),
      config.getCluster(), config.getClusterCols(), staging, pending, overlap,
      epilogue);
}

GemmEpilogue fp8::getMatmulEpilogue(const MatmulSpec &spec, int64_t waves,
                                    int64_t cols, bool storesInBulk) {
  int64_t instructions = spec.getEpilogueInstructions() * waves * cols / 2;
  bool isLooped = instructions > kMostUnrolled && storesInBulk && waves > 1;
  return isLooped ? GemmEpilogue::Looped : GemmEpilogue::Unrolled;
}

/// The schedule that a config's tiles want, by rule.
static GemmConfigAttr schedule(const MatmulSpec &spec, GemmConfigAttr config,
                               GPUTargetAttr target) {
  // A single warpgroup has the next block under way before it waits for the
  // last; where several share a tile, the others keep the tensor core busy.
  bool isFast = spec.accumulate == Accumulate::Fast;
  int64_t pending =
      isFast && config.getSharers() == 1 && config.getSplitK() == 1;
  GemmEpilogue epilogue =
      getMatmulEpilogue(spec, config.getWaves(), config.getCols(),
                        config.getStore() == GemmStore::TMA);
  auto make = [&](int64_t staging) {
    return withSchedule(config, config.getGroup(), staging, pending,
                        canOverlapPromotion(spec, config), epilogue);
  };
  GemmConfigAttr made = make(/*staging=*/2);
  return isFitting(spec, made, target) ? made : make(/*staging=*/1);
}

static GemmConfigAttr getConfig(const MatmulSpec &spec, const TileConfig &tile,
                                GPUTargetAttr target) {
  auto config = GemmConfigAttr::get(
      target.getContext(), tile.tileM, tile.tileN, tile.stages, tile.consumers,
      tile.schedule, /*group=*/16, /*split_k=*/1, /*swap_ab=*/false,
      getStore(spec), tile.cluster, tile.clusterCols, /*staging=*/2,
      /*pending=*/0, /*overlap=*/false, GemmEpilogue::Unrolled);
  return schedule(spec, config, target);
}

static GemmConfigAttr getConfig(const MatmulSpec &spec,
                                const SwappedConfig &swapped, int64_t splitK,
                                GPUTargetAttr target) {
  auto config = GemmConfigAttr::get(
      target.getContext(), swapped.tileM, 64, swapped.stages, /*consumers=*/1,
      kCooperative, /*group=*/1, splitK, /*swap_ab=*/true, GemmStore::Direct,
      /*cluster=*/1, /*cluster_cols=*/1, /*staging=*/2, /*pending=*/0,
      /*overlap=*/false, GemmEpilogue::Unrolled);
  return schedule(spec, config, target);
}

static ArrayRef<TileConfig> getTileConfigs(const MatmulSpec &spec) {
  if (spec.accumulate == Accumulate::Fast)
    return kFast;
  if (spec.a.scale == ScaleBlock::Row128 && spec.b.scale == ScaleBlock::Row128)
    return kBlockScaledBoth;
  if (spec.isBlocked())
    return kBlockScaled;
  return kPromoted;
}

/// `config` with each decision that the schedule makes by rule made otherwise,
/// one at a time.
static SmallVector<GemmConfigAttr> getVariants(GemmConfigAttr config) {
  int64_t group = config.getGroup(), staging = config.getStaging(),
          pending = config.getPending();
  bool overlap = config.getOverlap();
  GemmEpilogue epilogue = config.getEpilogue();
  GemmEpilogue otherEpilogue = epilogue == GemmEpilogue::Looped
                                   ? GemmEpilogue::Unrolled
                                   : GemmEpilogue::Looped;
  SmallVector<GemmConfigAttr> variants;
  auto add = [&](int64_t group, int64_t staging, int64_t pending, bool overlap,
                 GemmEpilogue epilogue) {
    variants.push_back(
        withSchedule(config, group, staging, pending, overlap, epilogue));
  };
  for (int64_t other : {1, 4, 8, 16, 32})
    if (other != group)
      add(other, staging, pending, overlap, epilogue);
  if (config.getStore() == GemmStore::TMA) {
    add(group, 3 - staging, pending, overlap, epilogue);
    if (config.getWaves() > 1)
      add(group, staging, pending, overlap, otherEpilogue);
  }
  if (config.getSplitK() == 1)
    add(group, staging, 1 - pending, overlap, epilogue);
  if (overlap)
    add(group, staging, pending, /*overlap=*/false, epilogue);
  return variants;
}

SmallVector<GemmConfigAttr> fp8::getMatmulCandidates(const MatmulSpec &spec,
                                                     GPUTargetAttr target,
                                                     bool exhaustive) {
  SmallVector<GemmConfigAttr> candidates;
  auto add = [&](GemmConfigAttr config) {
    if (!isFitting(spec, config, target))
      return;
    candidates.push_back(config);
    if (!exhaustive)
      return;
    for (GemmConfigAttr variant : getVariants(config))
      if (isFitting(spec, variant, target))
        candidates.push_back(variant);
  };
  if (!spec.isScaled()) {
    for (GemmConfigAttr config :
         getPlainMatmulCandidates(spec, target, kMostCandidates))
      add(config);
    return candidates;
  }
  for (const TileConfig &tile : getTileConfigs(spec))
    add(getConfig(spec, tile, target));
  for (const SwappedConfig &swapped : kSwapped)
    for (int64_t parts = 1; parts <= swapped.mostParts; parts *= 2)
      add(getConfig(spec, swapped, parts, target));
  return candidates;
}

MainLoopRates fp8::getMainLoopRates(const MatmulSpec &spec,
                                    GemmConfigAttr config) {
  constexpr MainLoopRates unknown = {/*share=*/0.5, /*energy=*/1.2};
  if (config.getSwapAb()) {
    const auto *found =
        llvm::find_if(kSwapped, [&](const SwappedConfig &entry) {
          return entry.tileM == config.getTileM();
        });
    if (found == std::end(kSwapped))
      return unknown;
    bool isPromoted = spec.accumulate == Accumulate::Promote;
    return {isPromoted ? found->promotedShare : found->share, found->energy};
  }
  // The table's own clusters first; with others a tile is still that tile.
  MainLoopRates rates = unknown;
  for (const TileConfig &tile : llvm::reverse(getTileConfigs(spec))) {
    if (tile.tileM != config.getTileM() || tile.tileN != config.getTileN() ||
        tile.consumers != config.getConsumers() ||
        tile.schedule != config.getSchedule())
      continue;
    rates = {tile.share, tile.energy};
    if (tile.stages == config.getStages() &&
        tile.cluster == config.getCluster() &&
        tile.clusterCols == config.getClusterCols())
      break;
  }
  return rates;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Up to M = 32 memory is the limit: swapped operands on the smallest side that
/// holds M, and parts of K only where the tiles would leave most
/// multiprocessors idle, for adding them up takes some 2 us.
static GemmConfigAttr selectForMemory(const MatmulSpec &spec,
                                      GPUTargetAttr target) {
  const SwappedConfig *swapped =
      llvm::find_if(kSwapped, [&](const SwappedConfig &entry) {
        return entry.tileM >= spec.m;
      });
  int64_t splitK = 1;
  if (spec.hasKnownExtents()) {
    int64_t tiles = spec.getNumTiles(swapped->tileM, 64);
    for (int64_t parts = 1; parts <= swapped->mostParts; parts *= 2)
      if (tiles <= 48 && tiles * parts <= target.getMultiprocessors() &&
          spec.k / parts >= 1536)
        splitK = parts;
  }
  return getConfig(spec, *swapped, splitK, target);
}

FailureOr<GemmConfigAttr> fp8::selectMatmulConfig(const MatmulSpec &spec,
                                                  GPUTargetAttr target,
                                                  std::string &reason) {
  SmallVector<GemmConfigAttr> candidates =
      spec.isScaled() ? getMatmulCandidates(spec, target, /*exhaustive=*/false)
                      : getPlainMatmulCandidates(spec, target, /*most=*/1);
  if (candidates.empty()) {
    if (succeeded(checkOperands(spec, reason)))
      reason = "no config of the table fits";
    return failure();
  }
  if (!spec.isScaled())
    return candidates.front();
  if (!ShapedType::isDynamic(spec.m) && spec.m <= 32) {
    if (spec.isPair()) {
      reason = "expected more than 32 rows of both products of a pair";
      return failure();
    }
    if (GemmConfigAttr config = selectForMemory(spec, target);
        llvm::is_contained(candidates, config))
      return config;
  }
  if (!spec.hasKnownExtents())
    return candidates.front();
  GemmConfigAttr best;
  double bestCost = 0;
  for (GemmConfigAttr config : candidates) {
    if (config.getSwapAb() && (spec.m > kMostSwapped || config.getTileM() < 64))
      continue;
    // Clusters pay where L2 is the limit: for small M, and where rows do not
    // start at cache lines. With promotion they do for large M, too: without,
    // what they save of L2's energy goes into waiting for one another.
    if (config.getClusterSize() > 1 && spec.m > kMostClustered &&
        spec.k % 128 == 0 && spec.accumulate == Accumulate::Fast)
      continue;
    double cost = getMatmulCost(spec, config, target);
    if (!best || cost < bestCost) {
      best = config;
      bestCost = cost;
    }
  }
  // What fits is correct, worth a thought or not.
  return best ? best : candidates.front();
}
