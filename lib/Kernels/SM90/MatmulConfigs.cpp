//===- MatmulConfigs.cpp - Configs that extents suggest -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The configs of a matmul are not a table but all that its extents suggest,
// ordered by a model of their time (MatmulCost.cpp).

#include "MatmulConfigs.h"
#include "../Blocks/GroupTable.h"
#include "../Matmul/RowGroups.h"
#include "TransposeFragments.h"

#include <array>
#include <cmath>
#include <numeric>
#include <random>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Counts within the spread that a group may have, and as many cases. A prime:
/// any step but 0 leads through all of them.
static constexpr int64_t kCounts = 11;

/// K blocks that a consumer which has a part of K to itself has, at least.
static constexpr int64_t kMinBlocks = 4;

/// Columns of a tile whose parts of K a cluster adds up, at most.
static constexpr int64_t kMaxClusterCols = 64;

/// Rows of a result, the tensor core's columns, that are transposed in shared
/// memory before they are stored, at least.
static constexpr int64_t kMinTransposed = 64;

/// Bytes of shared memory for barriers and alignment.
static constexpr int64_t kReserved = 1296;

/// Stages of a ring, and of one of few bytes, at most; and bytes that such a
/// one has then.
static constexpr int64_t kUsualStages = 16, kMaxStages = 32,
                         kRingBytes = 112 * 1024;

namespace {
/// How rows of a tile are divided among consumers; "rows" and "cols" as
/// MatmulContext has them.
struct RowConfig {
  int64_t rows;
  GemmSchedule schedule;
  int64_t consumers;
};
} // namespace

MatmulConfigs::MatmulConfigs(const MatmulSpec &spec, GPUTargetAttr target)
    : spec(spec), target(target),
      model(cast<WgmmaModelAttr>(getMachine(target).getMatmul())) {
  MatmulSpec known = spec.withUsualExtents();
  for (MatmulSpec::ResultExtents result : known.getResults()) {
    ms.push_back(std::max<int64_t>(result.m, 1));
    ns.push_back(std::max<int64_t>(result.n, 1));
  }
  // What all have in common is there once.
  (spec.sharesA() ? ms : ns).truncate(spec.areSiblings() ? 1 : ms.size());
  m = std::accumulate(ms.begin(), ms.end(), int64_t(0));
  n = std::accumulate(ns.begin(), ns.end(), int64_t(0));
  k = std::max<int64_t>(known.k, 1);
  batch = std::max<int64_t>(known.batch, 1);
  // What one group may have; without counts, all together.
  int64_t &masked = spec.getGrouping() == Grouping::K ? k : m;
  int64_t room = masked;
  if (spec.isMasked()) {
    masked = getExpectedTokens(spec, room);
    ms = {m};
  }
  if (spec.getGrouping() == Grouping::K) {
    batch = spec.getNumGroups();
    k = llvm::divideCeil(k, batch);
  } else if (spec.getGrouping() == Grouping::Rows && spec.getNumGroups() > 1) {
    groupsOfRows = spec.getNumGroups();
    RowGroups rowGroups{m, groupsOfRows};
    ms = {rowGroups.getRows(1 - RowGroups::kSpread), rowGroups.getMost()};
  }
  kBlocks = llvm::divideCeil(k * spec.a.getElementBytes(), kRowBytes);
  resultBytes = spec.resultType.getIntOrFloatBitWidth() / 8;
  storesInBulk = spec.canStoreInBulk();
  if (spec.isMasked() && spec.getGrouping() == Grouping::Rows)
    addCases(m / spec.getNumGroups(), room);
}

void MatmulConfigs::addCases(int64_t expected, int64_t room) {
  SmallVector<int64_t> counts;
  for (int64_t i = 0; i < kCounts; ++i) {
    double share = 1 + RowGroups::kSpread * (2.0 * i / (kCounts - 1) - 1);
    int64_t count = std::llround(share * double(expected));
    counts.push_back(std::clamp<int64_t>(count, 1, room));
  }
  // Each group has each count in one case, and which ones others have beside it
  // is as if all had been drawn: powers of 2 are all steps modulo kCounts.
  std::array<std::array<int64_t, kCounts>, kCounts> groups = {};
  std::mt19937 random;
  for (int64_t group = 0, step = 1; group < spec.getNumGroups();
       ++group, step = 2 * step % kCounts) {
    int64_t first = random() % kCounts;
    for (int64_t number = 0; number < kCounts; ++number)
      ++groups[number][(first + number * step) % kCounts];
  }
  std::vector<MatmulConfigs> all;
  for (ArrayRef<int64_t> groupsOfCase : groups) {
    MatmulConfigs one = *this;
    one.ms.clear();
    one.m = 0;
    for (auto [count, numGroups] : llvm::zip_equal(counts, groupsOfCase)) {
      if (numGroups == 0)
        continue;
      one.ms.push_back(count);
      one.groupsOfCounts.push_back(numGroups);
      one.m += count * numGroups;
    }
    all.push_back(std::move(one));
  }
  ms = counts;
  cases = std::move(all);
}

double MatmulConfigs::countTilesOfGroups(int64_t width) const {
  if (!groupsOfCounts.empty()) {
    int64_t tiles = 0;
    for (auto [count, groups] : llvm::zip_equal(ms, groupsOfCounts))
      tiles += groups * llvm::divideCeil(count, width);
    return tiles;
  }
  return RowGroups{m, groupsOfRows}.countTiles(width);
}

//===----------------------------------------------------------------------===//
// Configs
//===----------------------------------------------------------------------===//

static constexpr auto kCooperative = GemmSchedule::Cooperative;
static constexpr auto kPingPong = GemmSchedule::PingPong;

/// Five that share K took 1.01 to 1.11 times as long as four, on an H200.
static constexpr RowConfig kRowConfigs[] = {
    {64, kPingPong, 2},     {128, kPingPong, 2},    {64, kCooperative, 1},
    {128, kCooperative, 2}, {192, kCooperative, 3}, {256, kCooperative, 2},
    {64, kCooperative, 2},  {64, kCooperative, 3},  {64, kCooperative, 4},
    {256, kCooperative, 4},
};
static constexpr std::pair<int64_t, int64_t> kClusters[] = {
    {1, 1}, {2, 1}, {1, 2}, {4, 1}, {1, 4}, {2, 2}, {4, 2}, {2, 4},
};
/// Warpgroups that lift packed weights, and warps of them that share a stage.
static constexpr std::pair<int64_t, int64_t> kLifters[] = {
    {1, 4}, {1, 2}, {2, 8}, {2, 4}, {2, 2},
};
static constexpr int64_t kSplits[] = {2, 3, 4, 5, 6, 8};

/// Widths, multiples of `step` from `least` to 256, that cut one of `extents`
/// into equal parts.
static SmallVector<int64_t> getWidths(ArrayRef<int64_t> extents, int64_t step,
                                      int64_t least) {
  SmallVector<int64_t> widths;
  for (int64_t width = 256; width >= least; width -= step)
    if (llvm::any_of(extents, [&](int64_t extent) {
          int64_t parts = llvm::divideCeil(extent, width);
          return int64_t(llvm::alignTo(llvm::divideCeil(extent, parts),
                                       step)) == width;
        }))
      widths.push_back(width);
  // A narrower operand than any takes the narrowest.
  if (widths.empty())
    widths.push_back(llvm::alignTo(least, step));
  return widths;
}

int64_t MatmulConfigs::countTiles(ArrayRef<int64_t> extents, int64_t width) {
  int64_t tiles = 0;
  for (int64_t extent : extents)
    tiles += llvm::divideCeil(extent, width);
  return tiles;
}

bool MatmulConfigs::hasSchedule(const TileConfig &config) const {
  bool transposes = transposesRows(spec, config.swapped);
  if (config.isPingPong() && (config.swapped || transposes))
    return false;
  // ptxas serialized the products of two subtiles, which took 1.3 times as
  // long, and three warpgroups were never faster than two.
  if (transposes && (config.getSubtiles() > 1 || config.consumers >= 3))
    return false;
  // Four share a tile where each lifts 64 rows of it.
  if (config.consumers == 4 && config.getSharers() == 4 &&
      (!config.swapped || !canLiftInRegisters()))
    return false;
  return !spec.isMicroscaled() || config.getSubtiles() == 1;
}

/// The widest tile of so many consumers. ptxas serializes products of those
/// that have wider ones.
static int64_t getMostCols(const MatmulSpec &spec, int64_t consumers) {
  return consumers == 4 ? 56 : spec.isMicroscaled() ? 64 : 256;
}

void MatmulConfigs::addConfigs(bool swapped,
                               SmallVectorImpl<TileConfig> &configs) const {
  ArrayRef<int64_t> rowExtents = swapped ? ns : ms;
  ArrayRef<int64_t> colExtents = swapped ? ms : ns;
  // Narrower swizzles than 64 bytes cost more copies than they save.
  bool isTransposed = getCols(swapped).major == Major::MN;
  int64_t step = isTransposed ? 32 : swapped ? 8 : 16;
  bool hasManyRows = *llvm::max_element(ms) > model.getManyRows();
  // None of 82 beside factors of blocks was the best on 25 shapes, and they
  // took 1.3 times as long in the mean.
  if (swapped && hasManyRows && spec.b.scale == ScaleBlock::Block128)
    return;
  // Tokens are few where sums of 32 elements are multiplied in registers.
  if (!swapped && (spec.isMicroscaled() || spec.b.isLiftedInRegisters()))
    return;
  // Consumers transpose codes of the tensor core's M side.
  if (isTransposedCodes(getCols(swapped)))
    return;
  int64_t least = !swapped ? 32 : hasManyRows ? 64 : 8;
  SmallVector<int64_t> widths = getWidths(colExtents, step, least);
  // Tiles that do not cut blocks of factors need no choice between two.
  if (getCols(swapped).scale == ScaleBlock::Block128) {
    // A pair's tiles must not cut them.
    if (spec.isDual())
      widths.clear();
    for (int64_t width : {256, 128, 64, 32})
      if (!llvm::is_contained(widths, width))
        widths.push_back(width);
  }
  if (swapped && isTransposed)
    for (int64_t width : {8, 16})
      if (width >= *llvm::max_element(colExtents))
        widths.push_back(width);
  for (const RowConfig &row : kRowConfigs) {
    TileConfig shape{row.rows, 8, row.schedule, row.consumers, swapped};
    if (!hasSchedule(shape))
      continue;
    int64_t parts = shape.getBlockParts();
    if (parts > 1 &&
        (!swapped || spec.invariant || kBlocks < kMinBlocks * parts ||
         !(spec.isMicroscaled() || canLiftInRegisters())))
      continue;
    int64_t rowTiles = countTiles(rowExtents, row.rows);
    for (int64_t cols : widths) {
      if (cols > getMostCols(spec, row.consumers))
        continue;
      int64_t colTiles = countTiles(colExtents, cols);
      for (auto [cluster, clusterCols] : kClusters) {
        if (rowTiles < cluster || colTiles < clusterCols)
          continue;
        // Blocks that share 64 rows of groups took up to 2.2 times as long as
        // those that share none, and were never faster.
        if (groupsOfRows > 1 && row.rows == 64 && !swapped && clusterCols > 1)
          continue;
        // By themselves these take up to 1.3 times as long as the model says:
        // each brings a wide part of A for 64 columns of the result.
        if (swapped && hasManyRows && spec.isScaled() && row.rows == 64 &&
            cluster * clusterCols == 1)
          continue;
        // Nobody has measured larger ones in 8 bits.
        if (spec.isScaled() && cluster * clusterCols > 4)
          continue;
        TileConfig config{row.rows,      cols,         row.schedule,
                          row.consumers, swapped,      cluster,
                          clusterCols,   /*splitK=*/1, /*stages=*/0,
                          /*staging=*/2};
        addSplits(config, rowTiles * colTiles * batch, configs);
      }
    }
  }
}

void MatmulConfigs::addSplits(TileConfig config, int64_t tiles,
                              SmallVectorImpl<TileConfig> &configs) const {
  addStaged(config, configs);
  if (spec.invariant || config.isPingPong())
    return;
  for (int64_t splitK : kSplits) {
    // Parts pay where there are few tiles of a long K.
    if (kBlocks / (splitK * config.getBlockParts()) < 8 ||
        tiles * splitK > 2 * target.getMultiprocessors())
      continue;
    config.splitK = splitK;
    config.clusterK = false;
    addStaged(config, configs);
    // Nobody has measured it with more rows.
    config.clusterK =
        gainsByClusters() && config.swapped && llvm::isPowerOf2_64(splitK) &&
        config.getClusterSize() == 1 && config.cols <= kMaxClusterCols;
    if (config.clusterK)
      addStaged(config, configs);
  }
}

bool MatmulConfigs::gainsByClusters() const {
  if (model.getClusterReduce() == 0)
    return false;
  // Where blocks add their parts in a cluster, those of bf16 and of sums that
  // are promoted took 1.10 times as long as others, in the mean of 56 products
  // of an H200 and 1.38 at most.
  return spec.isMicroscaled() || canLiftInRegisters() ||
         (spec.isScaled() && spec.accumulate == Accumulate::Fast);
}

bool MatmulConfigs::canLiftInRegisters() const {
  // Nobody else can read them.
  if (spec.b.isLiftedInRegisters())
    return true;
  // Nobody has measured it of plain ones to E4M3.
  if (spec.b.isArranged)
    return true;
  if (!copiesFactors(spec.b.lifting))
    return false;
  double clocks = hasWideCodes(spec.b.lifting) ? model.getLiftRegisters()
                                               : model.getLiftRegistersOfE2m1();
  return clocks > 0;
}

void MatmulConfigs::addStaged(TileConfig config,
                              SmallVectorImpl<TileConfig> &configs) const {
  // ptxas spills a few registers of these.
  if (spec.isMicroscaled() && config.getBlockParts() == 2 && config.splitK > 1)
    return;
  // Nobody has measured two warpgroups that lift beside three that multiply.
  size_t count = !spec.b.isLifted()      ? 1
                 : config.consumers == 3 ? 2
                                         : std::size(kLifters);
  SmallVector<std::pair<int64_t, int64_t>> ways(
      ArrayRef(kLifters).take_front(count));
  if ((config.getBlockParts() > 1 && spec.b.isLifted()) ||
      config.getSharers() == 4 || spec.b.isLiftedInRegisters())
    ways.clear();
  bool transposes = transposesRows(spec, config.swapped);
  if (transposes)
    ways.clear();
  // Blocks that share tokens took 1.01 to 1.18 times as long as those that do
  // not, of 30 pairs of configs on an H200.
  bool inRegisters =
      config.swapped && canLiftInRegisters() && config.getClusterSize() == 1;
  if (transposes || inRegisters)
    ways.emplace_back(0, 4);
  for (auto [lifters, liftWarps] : ways) {
    config.lifters = lifters;
    config.liftWarps = liftWarps;
    config.staging = config.swapped && isStoredInBulk(config) ? 1 : 2;
    if (setStages(config))
      configs.push_back(config);
    if (liftsInRegisters(config))
      addWide(config, configs);
    TileConfig whole = config;
    whole.staging = config.getSubtiles() * getSlabs(config);
    if (canStageTile(whole) && setStages(whole))
      configs.push_back(whole);
  }
}

void MatmulConfigs::addWide(TileConfig config,
                            SmallVectorImpl<TileConfig> &configs) const {
  if (spec.accumulate == Accumulate::Promote)
    return;
  int64_t ofBlock = getLiftedPacking(spec.b.lifting)
                        .getBytesOf(kRowBytes / spec.b.getElementBytes());
  for (int64_t blocks = 2; blocks * ofBlock <= kRowBytes; blocks *= 2) {
    config.stageBlocks = blocks;
    // Each part of K has two stages, so that one is lifted while another comes.
    int64_t stages = llvm::divideCeil(kBlocks, blocks);
    if (stages >= 2 * config.splitK * config.getBlockParts() &&
        setStages(config))
      configs.push_back(config);
  }
}

bool MatmulConfigs::isStoredInBulk(const TileConfig &config) const {
  if (!config.swapped)
    return storesInBulk;
  // Few rows are stored one by one as soon. Nobody has measured it with
  // operands that are multiplied as they are.
  return storesInBulk && resultBytes == 2 && config.lifters == 0 &&
         config.cols >= kMinTransposed && spec.getGrouping() != Grouping::Rows;
}

int64_t MatmulConfigs::getSlabs(const TileConfig &config) const {
  int64_t bytes = spec.getResultCols(config.cols) * resultBytes;
  int64_t width = std::max<int64_t>(getStoreBytes(bytes), 16);
  return llvm::divideCeil(bytes, width);
}

bool MatmulConfigs::canStageTile(const TileConfig &config) const {
  // Nobody has measured it with operands in high precision.
  return spec.isScaled() && storesInBulk && !config.swapped &&
         config.getSubtiles() > 1 && config.staging > 2 &&
         config.staging <= GemmConfigAttr::kMaxStaging;
}

/// Stages that pay: of NVFP4 a product took 0.96 times as long by 32 as by 16
/// on an H200, of MXFP8, which has twice the bytes in each, 1.05 times.
static int64_t getMostStages(const MatmulSpec &spec, const TileConfig &config,
                             int64_t used, int64_t stageBytes) {
  if (!spec.b.isLifted() || config.lifters)
    return kUsualStages;
  return std::clamp((kRingBytes - used) / stageBytes, kUsualStages, kMaxStages);
}

bool MatmulConfigs::setStages(TileConfig &config) const {
  auto getStages = [&](int64_t staging) {
    int64_t used =
        kReserved +
        (spec.isGrouped() ? GroupTable::getBytes(spec.getNumGroups()) : 0);
    if (isStoredInBulk(config))
      used += config.consumers * staging * getStagingBytes(config);
    if (spec.isMicroscaled())
      used += config.consumers * kFactorBufferBytes;
    used += getPartBytes(config);
    bool hasRows = config.lifters || !spec.b.isLifted();
    int64_t inStage = (hasRows ? config.rows : 0) + config.cols;
    int64_t stageBytes = config.stageBlocks * inStage * kRowBytes +
                         getFactorBytes(spec, config) + 16;
    if (spec.b.isLifted()) {
      used += LiftLayout::getTableBytes(spec.b.lifting);
      stageBytes += LiftLayout::getStageBytes(
          spec.b, config.swapped ? config.rows : config.cols,
          config.stageBlocks);
    }
    int64_t stages = (target.getSharedBytes() - used) / stageBytes;
    stages = std::min(stages, getMostStages(spec, config, used, stageBytes));
    int64_t turns = std::max(config.getTurns(), config.getBlockParts());
    return stages / turns * turns;
  };
  config.stages = getStages(config.staging);
  if (config.staging == 2 && config.stages < 4 &&
      getStages(1) > config.stages) {
    config.staging = 1;
    config.stages = getStages(1);
  }
  return config.stages >= 3;
}

SmallVector<TileConfig> MatmulConfigs::getConfigs() const {
  SmallVector<TileConfig> configs;
  addConfigs(/*swapped=*/false, configs);
  addConfigs(/*swapped=*/true, configs);
  return configs;
}

GemmConfigAttr MatmulConfigs::getAttr(const TileConfig &config) const {
  bool isSmall = config.swapped && config.cols <= 64;
  bool isBulk = isStoredInBulk(config);
  // A single warpgroup has the next block under way before it waits for the
  // last; where several share a tile, the others keep the tensor core busy.
  bool isPending = spec.accumulate == Accumulate::Fast && config.lifters > 0 &&
                   config.getSharers() == 1 && config.splitK == 1 &&
                   spec.getGrouping() != Grouping::K;
  return GemmConfigAttr::get(
      target.getContext(), config.swapped ? config.cols : config.rows,
      config.swapped ? config.rows : config.cols, config.stages,
      config.consumers, config.schedule, /*group=*/isSmall ? 1 : 16,
      config.splitK, config.swapped,
      isBulk ? GemmStore::TMA : GemmStore::Direct,
      config.swapped ? config.clusterCols : config.clusterRows,
      config.swapped ? config.clusterRows : config.clusterCols, config.staging,
      isPending, canOverlapPromotion(spec, config),
      getMatmulEpilogue(spec, config.getSubtiles(), config.cols, isBulk, model),
      config.lifters, config.liftWarps, config.stageBlocks, config.clusterK);
}

SmallVector<GemmConfigAttr> MatmulConfigs::getBest(size_t most) const {
  SmallVector<TileConfig> configs = getConfigs();
  SmallVector<std::pair<double, size_t>> order;
  for (auto [i, config] : llvm::enumerate(configs))
    order.emplace_back(getCost(config), i);
  llvm::sort(order);
  SmallVector<GemmConfigAttr> best;
  for (auto [cost, i] : order) {
    if (best.size() == most)
      break;
    GemmConfigAttr attr = getAttr(configs[i]);
    std::string reason;
    if (succeeded(MatmulLayout::get(spec, attr, target, reason)))
      best.push_back(attr);
  }
  return best;
}
