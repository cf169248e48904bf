//===- SM90.cpp - Matmul configs on Hopper --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Which configs, and the choice among them. The shares are measured on an H200
// (132 multiprocessors, 227 KiB of shared memory); see docs/Kernels.md,
// "Selection".

#include "SM90Cost.h"
#include "fp8/Kernels/Heuristics.h"
#include "fp8/Kernels/MatmulKernel.h"
#include "fp8/Kernels/Target.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// A tile that the tensor core takes as it is.
struct Tile {
  int64_t tileM, tileN, stages, consumers;
  GemmSchedule schedule;
  /// What its main loop reaches of the tensor core's rate.
  double share;
  /// One block by itself, or two that share what they read of B.
  int64_t leastCluster = 1, mostCluster = 1;
};

/// One of 64 columns that it takes as rows: for small M.
struct Swapped {
  int64_t tileM, stages, mostParts;
  double share, promotedShare;
};

struct Candidate {
  GemmConfigAttr config;
  double share;
};
} // namespace

static constexpr auto kCooperative = GemmSchedule::Cooperative;
static constexpr auto kPingPong = GemmSchedule::PingPong;

/// With ping-pong, storing a tile costs the tensor core nothing. The many
/// widths are for results that they cut evenly among the multiprocessors, low
/// tiles for small M.
static constexpr Tile kFast[] = {
    {128, 128, 6, 2, kPingPong, 0.563, 1, 2},
    {128, 176, 5, 2, kPingPong, 0.552, 1, 2},
    {128, 192, 4, 2, kPingPong, 0.575},
    {128, 168, 5, 2, kPingPong, 0.575},
    {128, 160, 5, 2, kPingPong, 0.510},
    {128, 144, 6, 2, kPingPong, 0.555},
    {128, 112, 6, 2, kPingPong, 0.554},
    {128, 96, 7, 2, kPingPong, 0.550, 1, 2},
    {64, 256, 4, 2, kPingPong, 0.540},
    {64, 224, 5, 2, kPingPong, 0.548},
    {64, 128, 8, 2, kPingPong, 0.530, 1, 2},
    {64, 112, 8, 2, kPingPong, 0.503, 1, 2},
    {64, 96, 9, 2, kPingPong, 0.488, 1, 2},
    {64, 80, 10, 2, kPingPong, 0.418},
    {128, 256, 4, 2, kCooperative, 0.556},
    {128, 224, 4, 2, kCooperative, 0.568, 1, 2},
    {128, 192, 4, 2, kCooperative, 0.570, 1, 2},
    {128, 176, 5, 2, kCooperative, 0.550, 1, 2},
    {128, 160, 5, 2, kCooperative, 0.560},
    {128, 128, 6, 2, kCooperative, 0.545},
    {128, 96, 7, 2, kCooperative, 0.558},
    {128, 80, 8, 2, kCooperative, 0.558},
    {64, 64, 12, 1, kCooperative, 0.434, 2, 2},
    {64, 32, 16, 1, kCooperative, 0.605},
};

/// Promotion needs a second set of accumulators, so that waves are narrower.
static constexpr Tile kPromoted[] = {
    {128, 128, 5, 2, kCooperative, 0.625},
    {192, 128, 4, 3, kCooperative, 0.630},
    {128, 192, 4, 2, kCooperative, 0.515, 1, 2},
    {128, 176, 4, 2, kCooperative, 0.580},
    {256, 128, 4, 2, kCooperative, 0.550},
    {128, 96, 7, 2, kCooperative, 0.550},
    {64, 128, 8, 2, kPingPong, 0.600},
    {64, 128, 8, 1, kCooperative, 0.460},
    {64, 64, 12, 1, kCooperative, 0.381},
};

/// Factors along K: three consumers, or two sets of rows in turn, hide the
/// additions behind the tensor core.
static constexpr Tile kBlockScaled[] = {
    {192, 128, 4, 3, kCooperative, 0.650},
    {256, 128, 4, 2, kCooperative, 0.610},
    {128, 128, 5, 2, kCooperative, 0.605},
    {64, 128, 8, 1, kCooperative, 0.525},
    {64, 128, 8, 2, kPingPong, 0.530},
    {64, 64, 12, 1, kCooperative, 0.381},
};

/// Small M on the side of the tensor core that comes in 8s.
static constexpr Swapped kSwapped[] = {
    {8, 12, 8, 0.431, 0.300},  {16, 12, 8, 0.431, 0.300},
    {32, 12, 8, 0.431, 0.300}, {64, 10, 4, 0.431, 0.300},
    {128, 8, 2, 0.635, 0.485},
};

/// The largest M for which swapped operands, or clusters, are worth a thought.
static constexpr int64_t kMostSwapped = 256;
static constexpr int64_t kMostClustered = 512;

static GemmConfigAttr getConfig(MLIRContext *context, const Tile &tile,
                                GemmStore store, int64_t cluster) {
  return GemmConfigAttr::get(context, tile.tileM, tile.tileN, tile.stages,
                             tile.consumers, tile.schedule, /*group=*/16,
                             /*split_k=*/1, /*swap_ab=*/false, store, cluster);
}

static GemmConfigAttr getConfig(MLIRContext *context, const Swapped &swapped,
                                int64_t splitK) {
  return GemmConfigAttr::get(context, swapped.tileM, 64, swapped.stages,
                             /*consumers=*/1, kCooperative, /*group=*/1, splitK,
                             /*swap_ab=*/true, GemmStore::Direct,
                             /*cluster=*/1);
}

/// Rows of the result must be multiples of 16 bytes for bulk copies.
static GemmStore getStore(const MatmulSpec &spec) {
  int64_t bytes = spec.resultType.getIntOrFloatBitWidth() / 8;
  bool aligned = !ShapedType::isDynamic(spec.n) && spec.n * bytes % 16 == 0;
  return aligned ? GemmStore::TMA : GemmStore::Direct;
}

static ArrayRef<Tile> getTiles(const MatmulSpec &spec) {
  if (spec.accumulate == Accumulate::Fast)
    return kFast;
  if (isBlockedAlongK(spec.a.scale) || isBlockedAlongK(spec.b.scale))
    return kBlockScaled;
  return kPromoted;
}

/// All that fit, the tile that large products want first.
static SmallVector<Candidate> getCandidates(MLIRContext *context,
                                            const MatmulSpec &spec) {
  SmallVector<Candidate> candidates;
  auto add = [&](GemmConfigAttr config, double share) {
    std::string reason;
    if (succeeded(MatmulLayout::get(spec, config, reason)))
      candidates.push_back({config, share});
  };
  GemmStore store = getStore(spec);
  for (const Tile &tile : getTiles(spec))
    for (int64_t cluster = tile.leastCluster; cluster <= tile.mostCluster;
         ++cluster)
      add(getConfig(context, tile, store, cluster), tile.share);
  bool promoted = spec.accumulate == Accumulate::Promote;
  for (const Swapped &swapped : kSwapped)
    for (int64_t parts = 1; parts <= swapped.mostParts; parts *= 2)
      add(getConfig(context, swapped, parts),
          promoted ? swapped.promotedShare : swapped.share);
  return candidates;
}

SmallVector<GemmConfigAttr>
fp8::getMatmulCandidatesSM90(MLIRContext *context, const MatmulSpec &spec) {
  SmallVector<GemmConfigAttr> configs;
  for (const Candidate &candidate : getCandidates(context, spec))
    configs.push_back(candidate.config);
  return configs;
}

/// Up to M = 32 memory is the limit: swapped operands on the smallest side that
/// holds M, and parts of K only where the tiles would leave most
/// multiprocessors idle, for adding them up takes some 2 us.
static GemmConfigAttr selectForMemory(MLIRContext *context,
                                      const MatmulSpec &spec) {
  const Swapped *swapped = llvm::find_if(
      kSwapped, [&](const Swapped &entry) { return entry.tileM >= spec.m; });
  int64_t splitK = 1;
  if (!ShapedType::isDynamic(spec.n) && !ShapedType::isDynamic(spec.k) &&
      !ShapedType::isDynamic(spec.batch)) {
    int64_t tiles = llvm::divideCeil(spec.n, 64) * spec.batch;
    for (int64_t parts = 1; parts <= swapped->mostParts; parts *= 2)
      if (tiles <= 48 && tiles * parts <= kSM90.multiprocessors &&
          spec.k / parts >= 1536)
        splitK = parts;
  }
  return getConfig(context, *swapped, splitK);
}

FailureOr<GemmConfigAttr> fp8::selectMatmulConfigSM90(MLIRContext *context,
                                                      const MatmulSpec &spec,
                                                      std::string &reason) {
  SmallVector<Candidate> candidates = getCandidates(context, spec);
  if (candidates.empty()) {
    reason = "no config of the table fits";
    return failure();
  }
  if (!ShapedType::isDynamic(spec.m) && spec.m <= 32)
    if (GemmConfigAttr config = selectForMemory(context, spec);
        llvm::is_contained(
            llvm::map_range(candidates,
                            [](const Candidate &c) { return c.config; }),
            config))
      return config;
  if (ShapedType::isDynamic(spec.m) || ShapedType::isDynamic(spec.n) ||
      ShapedType::isDynamic(spec.k) || ShapedType::isDynamic(spec.batch))
    return candidates.front().config;
  const Candidate *best = nullptr;
  double bestCost = 0;
  for (const Candidate &candidate : candidates) {
    GemmConfigAttr config = candidate.config;
    if (config.getSwapAb() && (spec.m > kMostSwapped || config.getTileM() < 64))
      continue;
    // Clusters pay where L2 is the limit: for small M, and where rows do not
    // start at cache lines.
    if (config.getCluster() > 1 && spec.m > kMostClustered && spec.k % 128 == 0)
      continue;
    double cost = getMatmulCostSM90(spec, config, candidate.share);
    if (!best || cost < bestCost) {
      best = &candidate;
      bestCost = cost;
    }
  }
  // What fits is correct, worth a thought or not.
  return best ? best->config : candidates.front().config;
}
