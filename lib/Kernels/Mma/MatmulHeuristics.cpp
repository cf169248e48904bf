//===- MatmulHeuristics.cpp - Choice of configs of matmuls ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Which configs, and what each takes. Rates are those that the machine says;
// how far work of one kind hides another's was fitted to times on an H200,
// which multiplied by mma.sync (benchmarks/mma_share.py).
//
//===----------------------------------------------------------------------===//

#include "../Blocks/GroupTable.h"
#include "../MachineLookup.h"
#include "../Matmul/RowGroups.h"
#include "MatmulGenerator.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

namespace {
/// Extents on the instruction's side of rows and of columns.
struct TileShape {
  int64_t rows, cols, warpgroups;
};
} // namespace

/// The first one is for what is not known.
static constexpr TileShape kTiles[] = {
    {128, 128, 2}, {128, 256, 2}, {256, 128, 2}, {128, 64, 2},
    {64, 128, 1},  {128, 64, 1},  {64, 256, 1},  {64, 64, 1},
    {64, 32, 1},   {128, 192, 2}, {128, 96, 2}};
/// The same where a thread of it has registers for fragments beside its sums.
static constexpr TileShape kFastTile{128, 128, 1};
/// The same, swapped, for small M.
static constexpr TileShape kSwappedTiles[] = {
    {64, 16, 1}, {128, 16, 2}, {64, 32, 1},  {128, 32, 2},
    {64, 64, 1}, {128, 64, 2}, {128, 128, 2}};
static constexpr int64_t kSplits[] = {1, 2, 4, 8};
/// A thread's promoted sums beside which there is room for the factors of a K
/// block.
static constexpr int64_t kSumsBesideFactors = 96;
/// How many columns may be computed in parts of K.
static constexpr int64_t kMaxSplit = 64;
static constexpr int64_t kMaxStages = 5, kReservedBytes = 1024;
/// Sums of a tile whose parts take what the machine says.
static constexpr double kReducedSums = 64 * 64;
/// What a K block loses of the time that its other work takes, and clocks from
/// a copy's start to its end: chosen by times of 19 shapes on an H200, whose
/// choices got from 0.87 to 0.93 of the fastest's speed by them.
static constexpr double kContention = 0.25, kLatency = 600;

/// As many stages as `resident` blocks of a multiprocessor have room for; null
/// if that is less than two.
static GemmConfigAttr getConfig(const MatmulSpec &spec, TileShape tile,
                                bool swapped, int64_t splitK, int64_t resident,
                                GPUTargetAttr target) {
  int64_t shared =
      (target.getSharedBytes() + kReservedBytes) / resident - kReservedBytes -
      16 - (spec.isGrouped() ? GroupTable::getBytes(spec.getNumGroups()) : 0);
  bool inPairs = spec.canStoreInBulk() && !swapped;
  auto getWith = [&](int64_t stages) {
    return GemmConfigAttr::get(
        target.getContext(), swapped ? tile.cols : tile.rows,
        swapped ? tile.rows : tile.cols, stages, /*group=*/swapped ? 1 : 8,
        splitK, swapped, inPairs ? GemmStore::Pairs : GemmStore::Direct,
        tile.warpgroups, hasWholeChunks(spec));
  };
  int64_t stageBytes = (tile.rows + tile.cols) * kRowBytes +
                       getFactorBytes(spec, getWith(/*stages=*/2));
  int64_t stages = std::min(shared / stageBytes, kMaxStages);
  return stages < 2 ? GemmConfigAttr() : getWith(stages);
}

/// Whether ptxas spills what a thread has beside its sums: factors, or the
/// addresses of what is transposed on its way to registers.
static bool isCrowded(const MatmulSpec &spec, GemmConfigAttr config) {
  int64_t sums = config.getRows() * config.getCols() / config.getThreads();
  if (spec.isBlocked() && !spec.isMicroscaled())
    return sums > kSumsBesideFactors;
  bool transposes = spec.a.major != Major::K || spec.b.major != Major::K;
  return !spec.isScaled() && transposes && config.getRows() == 64 &&
         sums > kSumsBesideFactors;
}

SmallVector<GemmConfigAttr> mma::getMatmulCandidates(const MatmulSpec &spec,
                                                     GPUTargetAttr target,
                                                     bool exhaustive) {
  SmallVector<GemmConfigAttr> candidates;
  auto add = [&](TileShape tile, bool swapped, int64_t splitK) {
    for (int64_t resident : {1, 2, 3}) {
      GemmConfigAttr config =
          getConfig(spec, tile, swapped, splitK, resident, target);
      if (!config || isCrowded(spec, config))
        continue;
      std::string unused;
      if (!llvm::is_contained(candidates, config) &&
          succeeded(MatmulLayout::get(spec, config, target, unused)))
        candidates.push_back(config);
    }
  };
  for (TileShape tile : kTiles)
    add(tile, /*swapped=*/false, /*splitK=*/1);
  if (!promotesSums(spec, hasWideSums(target.getComputeCapability())))
    add(kFastTile, /*swapped=*/false, /*splitK=*/1);
  bool maySplit = !spec.invariant && !spec.isGrouped();
  if (maySplit)
    for (int64_t parts : ArrayRef(kSplits).drop_front())
      for (TileShape tile : {TileShape{128, 128, 2}, TileShape{64, 64, 1}})
        add(tile, /*swapped=*/false, parts);
  for (TileShape tile : kSwappedTiles)
    for (int64_t parts : ArrayRef(kSplits).take_front(
             tile.cols <= kMaxSplit && maySplit ? 4 : 1))
      add(tile, /*swapped=*/true, parts);
  if (exhaustive)
    for (GemmConfigAttr config : SmallVector<GemmConfigAttr>(candidates))
      for (int64_t group : {1, 4, 8, 16})
        if (group != config.getGroup())
          candidates.push_back(GemmConfigAttr::get(
              config.getContext(), config.getTileM(), config.getTileN(),
              config.getStages(), group, config.getSplitK(), config.getSwapAb(),
              config.getStore(), config.getWarpgroups(),
              config.getWholeChunks()));
  return candidates;
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

namespace {
/// Tiles; rows of the result; matrices of B, and the most rows that one has.
struct Work {
  double tiles, rows, matrices, most;
};
} // namespace

static Work getWork(const MatmulSpec &spec, GemmConfigAttr config) {
  int64_t tileM = config.getTileM(), tileN = config.getTileN();
  double rows = spec.m;
  if (!spec.isGrouped())
    return {double(spec.getNumTiles(tileM, tileN)), rows, /*matrices=*/1, rows};
  RowGroups groups{getExpectedTokens(spec, spec.m), spec.getNumGroups()};
  return {groups.countTiles(tileM) * double(llvm::divideCeil(spec.n, tileN)),
          double(groups.rows), double(groups.groups), double(groups.getMost())};
}

double mma::getMatmulCost(const MatmulSpec &spec, GemmConfigAttr config,
                          GPUTargetAttr target) {
  auto model = cast<MmaModelAttr>(getMachine(target).getMatmul());
  std::string unused;
  FailureOr<MatmulLayout> layout =
      MatmulLayout::get(spec, config, target, unused);
  double resident = succeeded(layout) ? double(layout->resident) : 1;
  double rows = double(config.getRows()), cols = double(config.getCols());
  Work work = getWork(spec, config);
  double items = work.tiles * double(config.getSplitK());
  double multiprocessors = double(target.getMultiprocessors());
  // Blocks of one multiprocessor share it.
  double together =
      std::min(resident, std::max(1.0, std::ceil(items / multiprocessors)));
  double waves = std::ceil(items / (multiprocessors * together));
  // A K block: the tensor core, shared memory, which is written once and read
  // by each warp, or L2.
  double bytes = (rows + cols) * kRowBytes;
  bool promotes =
      promotesSums(spec, hasWideSums(target.getComputeCapability()));
  WarpGrid warps = WarpGrid::get(spec, config, promotes);
  double reads =
      (rows * double(warps.ofCols) + cols * double(warps.ofRows)) * kRowBytes;
  double multiply = rows * cols * kRowBytes / double(target.getMmaRate());
  if (promotes)
    multiply += rows * cols / model.getAddRate();
  std::array<double, 3> parts{multiply, (bytes + reads) / model.getSharedRate(),
                              bytes / double(target.getL2Rate())};
  double most = *llvm::max_element(parts);
  double block = most + kContention * (parts[0] + parts[1] + parts[2] - most);
  // What one block waits for, others hide, and so do stages that are full.
  double ahead = double(config.getStages() - 1);
  block = std::max({block * together, block + model.getStep() / ahead,
                    (block + kLatency) / ahead});
  int64_t blockK = spec.a.getElementsOf(kRowBytes);
  double mainLoop =
      block * double(llvm::divideCeil(llvm::divideCeil(spec.k, blockK),
                                      config.getSplitK()));
  double elements = rows * double(spec.getResultCols(config.getCols()));
  double width = spec.resultType.getIntOrFloatBitWidth() / 8.0;
  bool isScattered = config.getStore() == GemmStore::Direct;
  double finish =
      elements *
          (model.getStoreInstructions() + spec.getEpilogueInstructions()) /
          model.getAddRate() +
      elements * width / model.getStoreRate() *
          (isScattered ? model.getScattered() : 1);
  double clocks = waves * (mainLoop + finish * together + model.getFill());
  double n = spec.n, k = spec.k;
  double total =
      spec.batch * (spec.a.getBytesOf(work.rows * k + work.matrices * n * k) +
                    work.rows * n * width);
  double memory = model.getFill() +
                  total / (double(target.getMemoryRate()) * multiprocessors);
  double cost = std::max(clocks, memory) + 1e-6 * std::min(clocks, memory);
  if (config.getSplitK() > 1)
    cost += model.getReduce() + model.getReducePart() * config.getSplitK() *
                                    waves * rows * cols / kReducedSums;
  // A tile of few rows, most of which do not exist, is as slow.
  if (config.getSwapAb() && work.most > model.getMostSwapped())
    cost *= 2;
  return cost;
}
