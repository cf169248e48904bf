//===- SM90.cpp - Matmul configs on Hopper --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Which configs, and why; nothing else. The numbers are from an H200 (132
// multiprocessors, 227 KiB of shared memory, 4096 8-bit multiply-adds a clock
// in each), see docs/Kernels.md.

#include "fp8/Kernels/Heuristics.h"
#include "fp8/Kernels/MatmulKernel.h"
#include "fp8/Kernels/Target.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct Candidate {
  int64_t tileM, tileN, stages;
  int64_t consumers = 2;
  GemmSchedule schedule = GemmSchedule::Cooperative;
};
} // namespace

/// m64n256 instructions read the fewest bytes of shared memory for a
/// multiplication, and power is what limits large products.
static constexpr Candidate kFast[] = {
    {128, 256, 4},
    {128, 192, 4},
    {128, 128, 6},
    {64, 256, 4, 1},
    {64, 128, 8, 1},
    {64, 64, 12, 1},
    {64, 256, 4, 2, GemmSchedule::PingPong},
    {64, 128, 8, 2, GemmSchedule::PingPong},
};

/// Promotion needs a second set of accumulators, so that the waves of 64 rows
/// are at most 128 wide.
static constexpr Candidate kPromoted[] = {
    {256, 128, 4},   {128, 128, 6},   {192, 128, 4, 3},
    {64, 128, 8, 1}, {64, 64, 12, 1},
};

/// Small M on the side of the tensor core that comes in 8s.
static constexpr int64_t kSwappedM[] = {8, 16, 32, 64, 128};

static GemmConfigAttr getConfig(MLIRContext *context, const Candidate &from,
                                GemmStore store) {
  return GemmConfigAttr::get(context, from.tileM, from.tileN, from.stages,
                             from.consumers, from.schedule, /*group=*/16,
                             /*split_k=*/1, /*swap_ab=*/false, store);
}

/// Rows of the result must be multiples of 16 bytes for bulk copies.
static GemmStore getStore(const MatmulSpec &spec) {
  int64_t bytes = spec.resultType.getIntOrFloatBitWidth() / 8;
  bool aligned = !ShapedType::isDynamic(spec.n) && spec.n * bytes % 16 == 0;
  return aligned ? GemmStore::TMA : GemmStore::Direct;
}

SmallVector<GemmConfigAttr>
fp8::getMatmulCandidatesSM90(MLIRContext *context, const MatmulSpec &spec) {
  SmallVector<GemmConfigAttr> candidates;
  std::string reason;
  auto add = [&](GemmConfigAttr config) {
    if (succeeded(MatmulLayout::get(spec, config, reason)))
      candidates.push_back(config);
  };
  GemmStore store = getStore(spec);
  if (spec.accumulate == Accumulate::Fast)
    for (const Candidate &candidate : kFast)
      add(getConfig(context, candidate, store));
  else
    for (const Candidate &candidate : kPromoted)
      add(getConfig(context, candidate, store));
  for (int64_t m : kSwappedM)
    for (int64_t splitK : {1, 2, 4, 8})
      add(GemmConfigAttr::get(context, m, 64,
                              m <= 32   ? 12
                              : m <= 64 ? 10
                                        : 8,
                              /*consumers=*/1, GemmSchedule::Cooperative,
                              /*group=*/1, splitK, /*swap_ab=*/true,
                              GemmStore::Direct));
  return candidates;
}

/// Swapped operands for M up to 128: the smallest side that holds M, and as
/// many parts of K as give every multiprocessor work.
static GemmConfigAttr selectSwapped(MLIRContext *context,
                                    ArrayRef<GemmConfigAttr> candidates,
                                    const MatmulSpec &spec) {
  int64_t tiles =
      ShapedType::isDynamic(spec.n)
          ? kSM90.multiprocessors
          : llvm::divideCeil(spec.n, 64) * std::max<int64_t>(1, spec.batch);
  int64_t kBlocks =
      ShapedType::isDynamic(spec.k) ? 1 : llvm::divideCeil(spec.k, 128);
  GemmConfigAttr best;
  for (GemmConfigAttr config : candidates) {
    if (!config.getSwapAb() || config.getTileM() < spec.m)
      continue;
    if (best && config.getTileM() != best.getTileM())
      break;
    // A part shorter than the ring does not hide its own latency.
    if (!best || (tiles * config.getSplitK() <= kSM90.multiprocessors * 2 &&
                  kBlocks >= config.getSplitK() * 4))
      best = config;
  }
  return best;
}

/// Clocks until the last multiprocessor is done, by the bytes and the products
/// of a K block, which of the two takes longer, and the waves of tiles.
static double getCost(GemmConfigAttr config, const MatmulSpec &spec) {
  auto tiles = [](int64_t extent, int64_t tile) {
    return llvm::divideCeil(extent, tile);
  };
  int64_t tileM = config.getTileM(), tileN = config.getTileN();
  double count = double(tiles(spec.m, tileM)) * tiles(spec.n, tileN) *
                 std::max<int64_t>(1, spec.batch);
  double waves = std::ceil(count / kSM90.multiprocessors);
  // 4096 multiply-adds a clock, on 64 rows at a time; two ping-pong tiles share
  // the tensor core. About 46 bytes a clock come from L2.
  double multiply = double(llvm::alignTo(tileM, 64)) * tileN * 128 / 4096;
  double load = double(tileM + tileN) * 128 / 46;
  // One consumer alone waits for its own results.
  double latency = config.getConsumers() == 1 ? 150 : 0;
  double perBlock = std::max(multiply + latency, load);
  double epilogue = 900 + double(tileM) * tileN * 2 / 64;
  if (config.getSchedule() == GemmSchedule::PingPong)
    epilogue *= 0.3;
  return waves * (tiles(spec.k, 128) * perBlock + epilogue);
}

FailureOr<GemmConfigAttr> fp8::selectMatmulConfigSM90(MLIRContext *context,
                                                      const MatmulSpec &spec,
                                                      std::string &reason) {
  SmallVector<GemmConfigAttr> candidates =
      getMatmulCandidatesSM90(context, spec);
  if (candidates.empty()) {
    reason = "no config of the table fits";
    return failure();
  }
  bool mKnown = !ShapedType::isDynamic(spec.m);
  if (mKnown && spec.m <= 128)
    if (GemmConfigAttr swapped = selectSwapped(context, candidates, spec))
      return swapped;
  // Nothing known: the tile that large products want.
  if (!mKnown || ShapedType::isDynamic(spec.n) ||
      ShapedType::isDynamic(spec.k) || ShapedType::isDynamic(spec.batch))
    return candidates.front();
  GemmConfigAttr best;
  double bestCost = 0;
  for (GemmConfigAttr config : candidates) {
    if (config.getSwapAb())
      continue;
    double cost = getCost(config, spec);
    if (!best || cost < bestCost) {
      best = config;
      bestCost = cost;
    }
  }
  return best;
}
