//===- MatmulHeuristics.cpp - Choice of configs of matmuls ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Which configs, and what each takes. Nothing of it is measured: the rates are
// those that the machine says, from what others have published
// (docs/Kernels.md, "Blackwell").

#include "../Blocks/GroupTable.h"
#include "../MachineLookup.h"
#include "../Matmul/RowGroups.h"
#include "MatmulGenerator.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

/// Columns of tiles of 128 rows, the first one for what is not known; and rows
/// of swapped tiles of 128 columns, for small M.
static constexpr int64_t kTileCols[] = {256, 224, 192, 160, 128, 112,
                                        96,  80,  64,  48,  32};
/// Widths of tiles of 256 rows, which two blocks compute together.
static constexpr int64_t kPairedCols[] = {256, 224, 192, 160, 128, 96, 64};
static constexpr int64_t kSwappedRows[] = {16, 32, 64, 128};
/// The same where sums are promoted: those that cut no block of factors.
static constexpr int64_t kPromotedCols[] = {256, 128, 64, 32};
static constexpr int64_t kPairedPromotedCols[] = {256, 128};
/// From so many on two warpgroups have the sums.
static constexpr int64_t kSharedPromotedCols = 128;
static constexpr int64_t kSplits[] = {1, 2, 4, 8};
/// How many of these may be computed in parts of K.
static constexpr int64_t kMaxSplit = 64;

/// What the shorter of two times counts that go by at once: where the longer
/// ones are the same.
static constexpr double kTie = 1e-6;
/// Bounds of operands, and beside them; the rest of shared memory is small.
static constexpr int64_t kMaxStages = 12, kOtherBytes = 1024;

static GemmConfigAttr getConfig(const MatmulSpec &spec, int64_t tileM,
                                int64_t tileN, bool swapped, int64_t splitK,
                                int64_t blocks, GPUTargetAttr target) {
  bool inBulk = spec.canStoreInBulk() && !swapped;
  int64_t staging = 2;
  int64_t stageBytes = (tileM + tileN) / blocks * kRowBytes;
  if (spec.isMicroscaled()) {
    // And up to 128 between atoms.
    int64_t steps = spec.a.getElementsOf(kRowBytes) / (4 * spec.a.getFactorK());
    stageBytes += (1 + llvm::divideCeil(swapped ? tileM : tileN, 128)) *
                  (kFactorBytes * steps + (steps > 1 ? 128 : 0));
  }
  int64_t epilogue_warpgroups = 1;
  if (promotesSums(spec) && (swapped ? tileM : tileN) >= kSharedPromotedCols) {
    epilogue_warpgroups = 2;
    // They have a buffer each.
    if (inBulk)
      staging = 1;
  }
  int64_t left =
      target.getSharedBytes() - kOtherBytes -
      getScaleBytes(spec, (swapped ? tileN : tileM) / blocks,
                    swapped ? tileM : tileN, swapped) -
      (inBulk ? epilogue_warpgroups * staging * 128 * kRowBytes : 0) -
      (spec.isGrouped() ? GroupTable::getBytes(spec.getNumGroups()) : 0);
  return GemmConfigAttr::get(target.getContext(), tileM, tileN,
                             std::min(left / stageBytes, kMaxStages),
                             /*group=*/swapped ? 1 : 16, splitK, swapped,
                             inBulk ? GemmStore::TMA : GemmStore::Direct,
                             staging, epilogue_warpgroups, blocks);
}

/// `config` with each decision that is made by rule made otherwise, one at a
/// time.
static SmallVector<GemmConfigAttr> getVariants(GemmConfigAttr config) {
  SmallVector<GemmConfigAttr> variants;
  auto add = [&](int64_t stages, int64_t group, int64_t staging,
                 int64_t epilogue_warpgroups) {
    variants.push_back(GemmConfigAttr::get(
        config.getContext(), config.getTileM(), config.getTileN(), stages,
        group, config.getSplitK(), config.getSwapAb(), config.getStore(),
        staging, epilogue_warpgroups, config.getCtaGroup()));
  };
  for (int64_t group : {1, 4, 8, 16, 32})
    if (group != config.getGroup())
      add(config.getStages(), group, config.getStaging(),
          config.getEpilogueWarpgroups());
  if (config.getStore() == GemmStore::TMA)
    add(config.getStages(), config.getGroup(), 3 - config.getStaging(),
        config.getEpilogueWarpgroups());
  // Their staging buffers take a stage's room.
  if (config.getSplitK() == 1 && config.getStages() > 2)
    add(config.getStages() - 1, config.getGroup(), config.getStaging(),
        3 - config.getEpilogueWarpgroups());
  return variants;
}

SmallVector<GemmConfigAttr> sm100::getMatmulCandidates(const MatmulSpec &spec,
                                                       GPUTargetAttr target,
                                                       bool exhaustive) {
  SmallVector<GemmConfigAttr> candidates;
  auto isFitting = [&](GemmConfigAttr config) {
    std::string unused;
    return succeeded(MatmulLayout::get(spec, config, target, unused));
  };
  auto add = [&](GemmConfigAttr config) {
    if (!isFitting(config))
      return;
    candidates.push_back(config);
    if (!exhaustive)
      return;
    for (GemmConfigAttr variant : getVariants(config))
      if (isFitting(variant))
        candidates.push_back(variant);
  };
  bool isPromoted = promotesSums(spec);
  for (int64_t cols :
       isPromoted ? ArrayRef(kPromotedCols) : ArrayRef(kTileCols))
    add(getConfig(spec, 128, cols, /*swapped=*/false, /*splitK=*/1,
                  /*blocks=*/1, target));
  for (int64_t cols :
       isPromoted ? ArrayRef(kPairedPromotedCols) : ArrayRef(kPairedCols))
    add(getConfig(spec, 256, cols, /*swapped=*/false, /*splitK=*/1,
                  /*blocks=*/2, target));
  for (int64_t rows : kSwappedRows)
    for (int64_t parts : ArrayRef(kSplits).take_front(
             rows <= kMaxSplit && !spec.invariant ? 4 : 1))
      add(getConfig(spec, rows, 128, /*swapped=*/true, parts, /*blocks=*/1,
                    target));
  return candidates;
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

static Tcgen05ModelAttr getModel(GPUTargetAttr target) {
  return cast<Tcgen05ModelAttr>(getMachine(target).getMatmul());
}

/// Whether each of the tensor core's columns has a factor in f32.
static bool hasFactorsOfCols(const MatmulSpec &spec, GemmConfigAttr config) {
  return promotesSums(spec) &&
         (config.getSwapAb() ? spec.a : spec.b).scale == ScaleBlock::Row128;
}

/// Clocks of a K block whose sums are promoted, of which a product takes
/// `multiply`: what warpgroups do, or the way of a set of sums to them and
/// back.
static double getPromotion(const MatmulSpec &spec, GemmConfigAttr config,
                           double multiply, Tcgen05ModelAttr model) {
  double sums = double(config.getBlockRows()) * double(config.getCols());
  // A multiply-add, and a product of factors where each column has one.
  double take = sums / model.getTensorMemoryRate(),
         add = sums * (hasFactorsOfCols(spec, config) ? 2 : 1) /
               model.getAddRate();
  // One warpgroup takes sums while the other one adds.
  double work =
      model.getChunk() +
      (config.getEpilogueWarpgroups() > 1 ? std::max(take, add) : take + add);
  return std::max(work, (multiply + work + 2 * model.getSync()) /
                            double(getNumAccumulators(spec, config)));
}

namespace {
/// Tiles; rows of the result, and those of A that are loaded; matrices of B,
/// and the most rows that one has.
struct Work {
  double tiles, rows, loaded, matrices, most;
};
} // namespace

static Work getWork(const MatmulSpec &spec, GemmConfigAttr config) {
  int64_t tileM = config.getTileM(), tileN = config.getTileN();
  double rows = spec.m;
  if (!spec.isGrouped())
    return {double(spec.getNumTiles(tileM, tileN)), rows, rows,
            /*matrices=*/1, /*most=*/rows};
  RowGroups groups{getExpectedTokens(spec, spec.m), spec.getNumGroups()};
  double tilesM = groups.countTiles(tileM);
  rows = groups.rows;
  // What a tile loads beyond a group is another one's, or nobody's.
  double loaded = spec.isMasked() ? tilesM * double(tileM) : rows;
  return {tilesM * double(llvm::divideCeil(spec.n, tileN)), rows, loaded,
          double(groups.groups), double(groups.getMost())};
}

double sm100::getMatmulCost(const MatmulSpec &spec, GemmConfigAttr config,
                            GPUTargetAttr target) {
  Tcgen05ModelAttr model = getModel(target);
  double rows = config.getBlockRows(), cols = config.getCols();
  double resultCols = spec.getResultCols(config.getCols());
  Work work = getWork(spec, config);
  double items = work.tiles * double(config.getSplitK());
  double waves =
      std::ceil(items / std::floor(double(target.getMultiprocessors()) /
                                   double(config.getCtaGroup())));
  // A K block: the tensor core, its reads of shared memory, or L2.
  double bytes = (rows + double(config.getBlockCols())) * kRowBytes;
  // Each of two blocks has the factors of all columns.
  if (spec.isMicroscaled())
    bytes += (rows + cols) * double(spec.a.getElementsOf(kRowBytes)) /
             double(spec.a.getFactorK());
  double multiply = rows * cols * kRowBytes / target.getMmaRate();
  double shared = bytes / model.getSharedRate();
  // Each of a warpgroup's warps loads all of its columns' factors, by fours.
  if (hasFactorsOfCols(spec, config))
    shared += cols;
  double block = std::max({multiply, shared, bytes / target.getL2Rate()});
  bool isPromoted = promotesSums(spec);
  if (isPromoted)
    block = std::max(block, getPromotion(spec, config, multiply, model));
  int64_t blockK = spec.a.getElementsOf(kRowBytes);
  double mainLoop = block * llvm::divideCeil(llvm::divideCeil(spec.k, blockK),
                                             config.getSplitK());
  // A tile's sums, taken while the next one is multiplied; stores of single
  // elements that are no neighbours take a line of L2 each.
  bool isScattered =
      config.getStore() == GemmStore::Direct && !config.getSwapAb();
  double elements = rows * resultCols;
  // Promoted ones are in registers.
  double take = isPromoted ? 0.0
                           : rows * cols / model.getTensorMemoryRate() +
                                 resultCols / 64 * model.getChunk();
  double finish =
      take +
      elements *
          (model.getStoreInstructions() + spec.getEpilogueInstructions()) /
          model.getAddRate() +
      elements * (spec.resultType.getIntOrFloatBitWidth() / 8.0) /
          model.getStoreRate() * (isScattered ? model.getScattered() : 1);
  // Sets that share columns: a tile's products wait until those of the tile
  // before are taken.
  double wait = 0;
  if (int64_t shared = getSharedColumns(spec, config))
    wait = 2 * model.getSync() + model.getChunk() +
           double(config.getBlockRows() * shared) / model.getTensorMemoryRate();
  double clocks = (waves - 1) * std::max(mainLoop + wait, finish) + mainLoop +
                  finish + model.getFill();
  // Who finishes a tile does not add up the next one's K blocks, of which the
  // tensor core computes those that there are sets of sums for.
  if (isPromoted) {
    double ahead = multiply * double(getNumAccumulators(spec, config));
    clocks = waves * (mainLoop + std::max(0.0, finish - ahead)) +
             std::min(finish, ahead) + model.getFill();
  }
  double n = spec.n, k = spec.k;
  double total =
      spec.batch *
      (spec.a.getBytesOf(work.loaded * k + work.matrices * n * k) +
       work.rows * n * (spec.resultType.getIntOrFloatBitWidth() / 8.0));
  double memory =
      model.getFill() +
      total / (target.getMemoryRate() * double(target.getMultiprocessors()));
  // Configs that wait for memory alike differ by what they ask of the rest.
  double cost = std::max(clocks, memory) + kTie * std::min(clocks, memory);
  if (config.getSplitK() > 1)
    cost += model.getReduce() + model.getReducePart() * config.getSplitK();
  // A tile of few rows, most of which do not exist, is as slow.
  if (config.getSwapAb() && work.most > model.getMostSwapped())
    cost *= 2;
  return cost;
}

std::string sm100::describePromotion(const MatmulSpec &spec,
                                     GemmConfigAttr config,
                                     GPUTargetAttr target) {
  if (!promotesSums(spec))
    return "";
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "sums of each 128 of K are multiplied by their factors in registers";
  MatmulSpec other = spec.withUsualExtents();
  double own = getMatmulCost(other, config, target);
  other.a.scale = other.b.scale = ScaleBlock::Row32;
  double least = std::numeric_limits<double>::infinity();
  for (GemmConfigAttr candidate :
       getMatmulCandidates(other, target, /*exhaustive=*/false))
    least = std::min(least, getMatmulCost(other, candidate, target));
  if (std::isfinite(least))
    os << llvm::formatv(": computed, not measured, that takes {0:F2} of the "
                        "time of known powers of two, which tensor cores "
                        "multiply",
                        own / least);
  return text;
}
