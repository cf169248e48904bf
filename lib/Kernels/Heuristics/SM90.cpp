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
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct Candidate {
  int64_t tileM, tileN, stages, consumers;
  GemmSchedule schedule;
  /// Measured share of the tensor core's rate that large products reach.
  double share;
  int64_t cluster = 1;
};
} // namespace

static constexpr auto kCooperative = GemmSchedule::Cooperative;
static constexpr auto kPingPong = GemmSchedule::PingPong;

/// With ping-pong, storing a tile costs the tensor core nothing; it wants two
/// waves of 64 rows, which share the columns that they read. Odd widths are for
/// results that they cut more evenly among the multiprocessors.
static constexpr Candidate kFast[] = {
    {128, 128, 6, 2, kPingPong, 0.66},    {128, 256, 4, 2, kCooperative, 0.65},
    {128, 192, 4, 2, kCooperative, 0.65}, {64, 256, 4, 2, kPingPong, 0.64},
    {64, 192, 5, 2, kPingPong, 0.63},     {128, 224, 4, 2, kCooperative, 0.63},
    {128, 176, 5, 2, kCooperative, 0.62}, {128, 128, 6, 2, kCooperative, 0.63},
    {128, 160, 5, 2, kCooperative, 0.61}, {64, 128, 8, 2, kPingPong, 0.60},
    {64, 256, 4, 1, kCooperative, 0.57},  {64, 128, 8, 1, kCooperative, 0.50},
    {64, 64, 12, 1, kCooperative, 0.34},
};

/// Promotion needs a second set of accumulators, so that waves are narrower.
/// Three consumers, or two sets in turn, hide the additions behind the tensor
/// core.
static constexpr Candidate kPromoted[] = {
    {192, 128, 4, 3, kCooperative, 0.62}, {128, 192, 4, 2, kCooperative, 0.61},
    {256, 128, 4, 2, kCooperative, 0.58}, {128, 128, 5, 2, kCooperative, 0.58},
    {64, 128, 8, 2, kPingPong, 0.46},     {64, 128, 8, 1, kCooperative, 0.45},
    {64, 64, 12, 1, kCooperative, 0.30},
};

/// Where rows do not start at cache lines, each row of a box takes two of them,
/// and L2 becomes the limit: two blocks share what they read of B. Elsewhere
/// that gains nothing.
static constexpr Candidate kFastClusters[] = {
    {128, 128, 6, 2, kPingPong, 0.66, 2},
    {128, 256, 4, 2, kCooperative, 0.65, 2},
    {128, 192, 4, 2, kCooperative, 0.65, 2},
    {128, 224, 4, 2, kCooperative, 0.63, 2},
    {128, 176, 5, 2, kCooperative, 0.62, 2},
};
static constexpr Candidate kPromotedClusters[] = {
    {128, 192, 4, 2, kCooperative, 0.61, 2},
};

/// Small M on the side of the tensor core that comes in 8s.
static constexpr int64_t kSwappedM[] = {8, 16, 32, 64, 128};
static constexpr int64_t kSwappedSplits[] = {1, 2, 4, 8};

static GemmConfigAttr getConfig(MLIRContext *context, const Candidate &from,
                                GemmStore store) {
  return GemmConfigAttr::get(context, from.tileM, from.tileN, from.stages,
                             from.consumers, from.schedule, /*group=*/16,
                             /*split_k=*/1, /*swap_ab=*/false, store,
                             from.cluster);
}

/// Rows of the result must be multiples of 16 bytes for bulk copies.
static GemmStore getStore(const MatmulSpec &spec) {
  int64_t bytes = spec.resultType.getIntOrFloatBitWidth() / 8;
  bool aligned = !ShapedType::isDynamic(spec.n) && spec.n * bytes % 16 == 0;
  return aligned ? GemmStore::TMA : GemmStore::Direct;
}

static bool isFast(const MatmulSpec &spec) {
  return spec.accumulate == Accumulate::Fast;
}

static ArrayRef<Candidate> getTable(const MatmulSpec &spec) {
  return isFast(spec) ? ArrayRef(kFast) : ArrayRef(kPromoted);
}

static ArrayRef<Candidate> getClusters(const MatmulSpec &spec) {
  return isFast(spec) ? ArrayRef(kFastClusters) : ArrayRef(kPromotedClusters);
}

/// Whether rows of the operands start at multiples of a cache line.
static bool isAligned(const MatmulSpec &spec) {
  return ShapedType::isDynamic(spec.k) || spec.k % 128 == 0;
}

static GemmConfigAttr getSwapped(MLIRContext *context, int64_t tileM,
                                 int64_t splitK) {
  int64_t stages = tileM <= 32 ? 12 : tileM <= 64 ? 10 : 8;
  return GemmConfigAttr::get(context, tileM, 64, stages, /*consumers=*/1,
                             kCooperative, /*group=*/1, splitK,
                             /*swap_ab=*/true, GemmStore::Direct,
                             /*cluster=*/1);
}

static bool fits(const MatmulSpec &spec, GemmConfigAttr config) {
  std::string reason;
  return succeeded(MatmulLayout::get(spec, config, reason));
}

SmallVector<GemmConfigAttr>
fp8::getMatmulCandidatesSM90(MLIRContext *context, const MatmulSpec &spec) {
  SmallVector<GemmConfigAttr> candidates;
  for (ArrayRef<Candidate> table : {getTable(spec), getClusters(spec)})
    for (const Candidate &candidate : table)
      candidates.push_back(getConfig(context, candidate, getStore(spec)));
  for (int64_t m : kSwappedM)
    for (int64_t splitK : kSwappedSplits)
      candidates.push_back(getSwapped(context, m, splitK));
  llvm::erase_if(candidates,
                 [&](GemmConfigAttr config) { return !fits(spec, config); });
  return candidates;
}

/// Swapped operands for small M: the smallest side that holds M, and parts of K
/// only where the tiles would leave most multiprocessors idle, for adding them
/// up takes some 2 us. Beyond M = 32 they lose once every multiprocessor has a
/// tile.
static GemmConfigAttr selectSwapped(MLIRContext *context,
                                    const MatmulSpec &spec) {
  if (ShapedType::isDynamic(spec.m) || spec.m > 64)
    return {};
  const int64_t *m =
      llvm::find_if(kSwappedM, [&](int64_t tileM) { return tileM >= spec.m; });
  int64_t splitK = 1;
  if (!ShapedType::isDynamic(spec.n) && !ShapedType::isDynamic(spec.k) &&
      !ShapedType::isDynamic(spec.batch)) {
    int64_t tiles = llvm::divideCeil(spec.n, 64) * spec.batch;
    if (spec.m > 32 && tiles > kSM90.multiprocessors)
      return {};
    for (int64_t parts : kSwappedSplits)
      if (tiles <= 48 && tiles * parts <= kSM90.multiprocessors &&
          spec.k / parts >= 1536)
        splitK = parts;
  } else if (spec.m > 32) {
    return {};
  }
  GemmConfigAttr config = getSwapped(context, *m, splitK);
  return fits(spec, config) ? config : GemmConfigAttr();
}

/// Instructions for an element of the epilogue, roughly: what functions take in
/// the kernel (fp8-lower-kernel-math), and one for everything else.
static double getEpilogueCost(const MatmulSpec &spec) {
  double cost = 1;
  if (!spec.epilogue)
    return cost;
  for (Operation &op : spec.epilogue->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    cost += isa<math::ErfOp>(op)                                 ? 11
            : isa<math::TanhOp, math::LogOp, math::PowFOp>(op)   ? 6
            : isa<math::ExpOp, arith::DivFOp, math::RsqrtOp>(op) ? 3
                                                                 : 1;
  }
  return cost;
}

/// Clocks until the last multiprocessor is done: waves of tiles, each of which
/// multiplies and loads its K blocks, goes through the epilogue and is stored.
static double getCost(const Candidate &candidate, const MatmulSpec &spec) {
  int64_t tileM = candidate.tileM, tileN = candidate.tileN;
  int64_t cluster = candidate.cluster;
  double count = double(llvm::divideCeil(spec.m, tileM * cluster)) *
                 llvm::divideCeil(spec.n, tileN) * spec.batch;
  double waves = std::ceil(count * cluster / kSM90.multiprocessors);
  // 4096 multiply-adds a clock; 70 bytes from L2, or 28 where rows do not start
  // at cache lines.
  double multiply = double(tileM) * tileN * 128 / 4096 / candidate.share;
  double load =
      double(tileM + tileN / cluster) * 128 / (isAligned(spec) ? 70 : 28);
  double store = 900 + double(tileM) * tileN * 2 / 64;
  // Two warps a scheduler issue an instruction every other clock, one every
  // fourth.
  double elements = double(tileM) * tileN;
  double issue = elements * getEpilogueCost(spec) / 128;
  double mainLoop = llvm::divideCeil(spec.k, 128) * std::max(multiply, load);
  if (candidate.schedule == kCooperative)
    return waves *
           (mainLoop + store + issue / (candidate.consumers > 1 ? 0.5 : 0.27));
  // The epilogue of one warpgroup hides behind the main loop of the other,
  // unless it takes longer; that of the last tile behind nothing.
  double epilogue = store + issue / 0.27;
  return waves * std::max(mainLoop + 0.2 * store, (mainLoop + epilogue) / 2) +
         epilogue;
}

FailureOr<GemmConfigAttr> fp8::selectMatmulConfigSM90(MLIRContext *context,
                                                      const MatmulSpec &spec,
                                                      std::string &reason) {
  if (GemmConfigAttr swapped = selectSwapped(context, spec))
    return swapped;
  bool allKnown =
      !ShapedType::isDynamic(spec.m) && !ShapedType::isDynamic(spec.n) &&
      !ShapedType::isDynamic(spec.k) && !ShapedType::isDynamic(spec.batch);
  GemmConfigAttr best;
  double bestCost = 0;
  SmallVector<Candidate> candidates(getTable(spec));
  if (!isAligned(spec))
    llvm::append_range(candidates, getClusters(spec));
  for (const Candidate &candidate : candidates) {
    GemmConfigAttr config = getConfig(context, candidate, getStore(spec));
    if (!fits(spec, config))
      continue;
    // Nothing known: the tile that large products want.
    if (!allKnown)
      return config;
    double cost = getCost(candidate, spec);
    if (!best || cost < bestCost) {
      best = config;
      bestCost = cost;
    }
  }
  if (best)
    return best;
  reason = "no config of the table fits";
  return failure();
}
