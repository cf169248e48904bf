//===- MatmulCost.cpp - What a matmul costs on Hopper ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// A block multiplies K blocks while its producer brings the next ones; the
// slower of the two counts, or memory, for all blocks. Then there is the energy
// of the products, which the board's power bounds. What each takes is the
// machine's (lib/Kernels/Machines).

#include "MatmulConfigs.h"
#include "MatmulLayout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

static WgmmaCostsModelAttr getCosts(const MatmulSpec &spec,
                                    WgmmaModelAttr model) {
  if (!spec.isScaled())
    return model.getPlain();
  // Blocks that are added in registers have a cost of their own.
  if (spec.accumulate == Accumulate::Fast || spec.isMicroscaled())
    return model.getFast();
  if (spec.a.scale == ScaleBlock::Row128 && spec.b.scale == ScaleBlock::Row128)
    return model.getBoth();
  return spec.isBlocked() ? model.getBlock() : model.getPromote();
}

/// Bytes that L2 and memory deliver at once.
static constexpr int64_t kSectorBytes = 32;

/// Bytes that shared memory reads or writes in a clock.
static constexpr int64_t kSharedBytes = 128;

/// Close to the largest: what is limited by one resource is slowed down by
/// others a little.
static double combine(std::initializer_list<double> clocks) {
  double sum = 0;
  for (double value : clocks) {
    double cube = value * value * value;
    sum += cube * cube;
  }
  return std::cbrt(std::sqrt(sum));
}

/// Bytes of packed weights and of their factors, of each of what they are
/// lifted to.
static double getShare(const OperandSpec &operand) {
  if (!operand.isLifted())
    return 1;
  double code = getLiftedPacking(operand.lifting).bits / 8.0;
  return (code + 1.0 / double(getLiftedGroup(operand.lifting))) /
         double(operand.getElementBytes());
}

/// Instructions that lift a row of a K block, over those from MXFP4 to E4M3.
/// Those are 9 for 8 elements, of which a block has twice as many as of bf16.
static double getLiftWork(Lifting lifting) {
  double ofTen = hasWideCodes(lifting) ? 29 : 20;
  return copiesFactors(lifting) ? ofTen / 20 * 8 / 9 : 1;
}

/// The clocks of two that hide each other in part.
static double joinClocks(double one, double other) {
  return std::sqrt(one * one + other * other);
}

struct MatmulConfigs::Side {
  double extent, width;
  bool isTransposed, isNarrow, isMisaligned, cutsSectors;
  /// Copies that bring it, and blocks that share them.
  double boxes, sharers;
  /// Bytes that are copied, of each that is multiplied.
  double share;
  /// Tiles, and clusters along them.
  double tiles, groups;
  /// Rows of a tile in bounds; and out of bounds in every tile, in the last
  /// one, and in all of them.
  double used, alwaysOutOfBounds, outOfBounds, totalOutOfBounds;
  /// Zero fill of rows out of bounds that is skipped where stages have zeros:
  /// all, or boxes of so many of them; 0 for none.
  int64_t skippedFill;

  double getLater(double rows) const {
    return skippedFill ? std::fmod(rows, skippedFill) : rows;
  }
};

MatmulConfigs::Side MatmulConfigs::getSide(const TileConfig &config,
                                           bool ofRows) const {
  const OperandSpec &operand =
      ofRows ? getRows(config.swapped) : getCols(config.swapped);
  int64_t extent = ofRows != config.swapped ? m : n;
  int64_t width = ofRows ? config.rows : config.cols;
  int64_t sharers = ofRows ? config.clusterCols : config.clusterRows;
  int64_t splitters = ofRows ? config.clusterRows : config.clusterCols;
  OperandTile tile(operand, ofRows ? width : spec.getResultCols(width),
                   /*blocks=*/1);
  Side side;
  side.extent = extent;
  side.width = width;
  side.isTransposed = tile.isTransposed();
  side.isNarrow = tile.getSwizzle() < kRowBytes;
  // A pair has its columns from two tensors.
  int64_t ofTensor = spec.getResultCols(ofRows ? 0 : extent);
  int64_t innermost = side.isTransposed ? (ofRows ? extent : ofTensor) : k;
  int64_t pitch = innermost * operand.getElementBytes();
  side.isMisaligned = pitch % kRowBytes != 0;
  side.cutsSectors = pitch % kSectorBytes != 0;
  side.boxes = double(width) / tile.getBoxRows();
  side.sharers = sharers;
  side.share = getShare(operand);
  if (groupsOfRows > 1 && ofRows != config.swapped) {
    double mean = side.extent / groupsOfRows;
    side.tiles = countTilesOfGroups(width);
    side.groups = countTilesOfGroups(width * splitters);
    side.used = std::min(side.width, mean);
    side.alwaysOutOfBounds = side.width - side.used;
    side.outOfBounds = std::max(side.width / 2, side.alwaysOutOfBounds);
  } else {
    ArrayRef<int64_t> extents = ofRows != config.swapped ? ms : ns;
    int64_t tiles = countTiles(extents, width);
    int64_t groups = countTiles(extents, width * splitters);
    side.tiles = tiles;
    side.groups = groups;
    side.used = std::min(width, extent);
    side.alwaysOutOfBounds = width - side.used;
    // A tile that only completes a cluster is all out of bounds.
    side.outOfBounds = groups * splitters > tiles
                           ? width
                           : std::min(width, tiles * width - extent);
  }
  side.totalOutOfBounds = side.groups * splitters * side.width - side.extent;
  bool inGroups =
      (groupsOfRows > 1 || !groupsOfCounts.empty()) && ofRows != config.swapped;
  bool isFilled = inGroups || !config.skipsZeros() || model.getFills();
  side.skippedFill = isFilled ? 0 : side.isTransposed ? tile.getBoxRows() : 1;
  return side;
}

/// Clocks of the tensor core, for one K block.
double MatmulConfigs::getBlockClocks(const TileConfig &config,
                                     double activeBlocks) const {
  WgmmaCostsModelAttr c = getCosts(spec, model);
  double rows = config.rows, cols = config.cols;
  // Those who share K have a block each at the same time.
  double parts = config.getBlockParts();
  double share = config.isPingPong()     ? c.getPingPongShare()
                 : config.consumers == 1 ? c.getSingleShare()
                                         : c.getCooperativeShare();
  double multiply =
      rows * std::max(cols, 16.0) * kRowBytes / target.getMmaRate() / share;
  // Both operands come from shared memory, for each 64 rows, but what is lifted
  // in registers.
  double read = rows / 64 * ((config.lifters ? 64 : 0) + cols);
  double clocks =
      combine({multiply, read, c.getSubtile() * config.getSubtiles() / parts});
  if (spec.isMicroscaled()) {
    // One waits for the other: words of factors, products, what adds them.
    // Consumers hide little of that from each other, who share the port to
    // shared memory.
    double sums = kRowBytes / 32 * cols / 2;
    clocks = (model.getScaledBlock() + sums * model.getScaledAddition()) *
             std::max(1.0, model.getScaledShare() * config.consumers) / parts;
  } else if (spec.accumulate == Accumulate::Promote) {
    // A thread of a warp of each scheduler has these additions.
    double additions = rows / 64 * cols / 2;
    // Where tiles cut blocks of 128 columns: a comparison, and a choice of each
    // row's factor.
    if (getCols(config.swapped).scale == ScaleBlock::Block128 &&
        config.cols % 128 != 0 && 128 % config.cols != 0)
      additions += 3 * rows / 64 * cols / std::gcd(config.cols, int64_t(128));
    int64_t beside = (config.isPingPong() ? 2 : config.consumers) *
                     (canOverlapPromotion(spec, config) ? 2 : 1);
    clocks += additions * (c.getPromotion() + c.getExposedPromotion() / beside);
  }
  return clocks *
         (1 + c.getContention() * activeBlocks / target.getMultiprocessors());
}

double MatmulConfigs::getStoreClocks(const TileConfig &config) const {
  WgmmaCostsModelAttr c = getCosts(spec, model);
  double columns = config.rows / 64.0 * config.cols;
  if (!isStoredInBulk(config))
    return c.getDirect() * columns;
  // A slab of a subtile has as many rows as the tile has columns.
  if (config.swapped)
    return c.getStore() + c.getOneBuffer() * c.getSlab() * columns / 64;
  // The slabs of a subtile share barriers where a tile is staged whole.
  double slabs = config.staging > 2    ? 1
                 : config.staging == 1 ? c.getOneBuffer() * getSlabs(config)
                                       : getSlabs(config);
  // Results of 16 bits are that narrow in narrow tiles only.
  bool isNarrow =
      resultBytes == 1 && getStoreBytes(spec.getResultCols(config.cols)) < 64;
  return c.getStore() + (c.getSlab() + (isNarrow ? model.getNarrowSlab() : 0)) *
                            config.getSubtiles() * slabs;
}

/// The tiles of a result, wave of blocks by wave.
struct MatmulConfigs::Waves {
  template <typename Get>
  double sum(Get get) const {
    return get(rows) + get(cols);
  }

  Side rows, cols;
  /// Multiprocessors; how many clusters they hold at once; clusters' tiles.
  double all, clusters, items;
  double count, activeBlocks, blocksInLast;
  /// K blocks of a part of K; those that bring zeros to each stage of the ring.
  double kBlocks, filled;
  /// What blocks lose to those that have their port to L2 for themselves.
  double uneven;
};

MatmulConfigs::Waves MatmulConfigs::getWaves(const TileConfig &config) const {
  WgmmaCostsModelAttr c = getCosts(spec, model);
  Waves waves;
  waves.rows = getSide(config, /*ofRows=*/true);
  waves.cols = getSide(config, /*ofRows=*/false);
  double all = waves.all = target.getMultiprocessors();
  int64_t size = config.getClusterSize();
  int64_t blocks = size * (config.clusterK ? config.splitK : 1);
  double reached = blocks == 8   ? std::min<double>(all, model.getReachedBy_8())
                   : blocks == 4 ? std::min<double>(all, model.getReachedBy_4())
                                 : all;
  waves.clusters = std::floor(reached / double(blocks)) * double(blocks / size);
  waves.items = waves.rows.groups * waves.cols.groups * batch * config.splitK;
  waves.count = std::ceil(waves.items / waves.clusters);
  waves.activeBlocks = std::min(waves.items, waves.clusters) * size;
  // The last wave may be smaller.
  waves.blocksInLast =
      (waves.items - (waves.count - 1) * waves.clusters) * size;
  waves.kBlocks = std::ceil(double(kBlocks) / config.splitK);
  waves.filled =
      std::min<double>(config.stages * config.stageBlocks, waves.kBlocks);
  // Up to a quarter of the multiprocessors share no port, all of them share
  // all.
  double active = waves.activeBlocks / all;
  double shared = std::min(2 * (1 - active), std::max(4 * active - 1, 0.0));
  waves.uneven = size > 1 ? 1 : 1 + c.getUneven() * shared;
  return waves;
}

double MatmulConfigs::getCopyClocks(const TileConfig &config,
                                    const Waves &waves,
                                    double Side::*outOfBounds) const {
  WgmmaCostsModelAttr c = getCosts(spec, model);
  int64_t size = config.getClusterSize();
  // Blocks of a cluster of two share a port to L2.
  double ports = waves.activeBlocks * 2 > waves.all || size == 2 ? 2 : 1;
  double lines = c.getNarrowLine() * waves.sum([](const Side &side) {
    return side.isNarrow * side.used;
  });
  double requested = waves.sum([&](const Side &side) {
    double excess = (side.isMisaligned ? c.getMisaligned() : 0) +
                    (side.cutsSectors ? c.getSectorMisalignment() : 0);
    return side.used * kRowBytes * side.share * (1 + excess) *
           std::pow(side.sharers, -c.getSharing());
  });
  double boxes = c.getBox() * waves.sum([](const Side &side) {
    return side.boxes / side.sharers;
  });
  double latency =
      c.getLatency() / double(config.stageBlocks * (config.stages - 1));
  // Short rows of codes take as long as long ones.
  if (liftsInRegisters(config))
    boxes += model.getBoxRow() * waves.rows.used / double(config.stageBlocks);
  auto getReaders = [&](const Side &side, const Side &other) {
    return side.isTransposed && side.isMisaligned
               ? std::min(other.groups, waves.activeBlocks / size)
               : 0;
  };
  double contention =
      c.getL2Contention() *
      (getReaders(waves.rows, waves.cols) + getReaders(waves.cols, waves.rows));
  auto getFeed = [&](double outOfBounds) {
    double port = ports * (requested / c.getPortRate() +
                           c.getOutOfBounds() * outOfBounds) +
                  boxes;
    return waves.uneven * combine({lines, port, latency,
                                   c.getOutOfBoundsAll() * waves.activeBlocks *
                                       outOfBounds}) +
           contention;
  };
  double first = waves.sum(
      [&](const Side &side) { return side.*outOfBounds / side.sharers; });
  double later = waves.sum([&](const Side &side) {
    return side.getLater(side.*outOfBounds) / side.sharers;
  });
  return waves.filled * getFeed(first) +
         (waves.kBlocks - waves.filled) * getFeed(later);
}

double MatmulConfigs::getLiftClocks(const TileConfig &config) const {
  double rows = config.swapped ? config.rows : config.cols;
  // Consumers that lift for themselves do so while others multiply.
  if (config.lifters == 0) {
    // To E4M3 twice as many in as much time.
    double ofRow =
        hasWideCodes(spec.b.lifting) || !copiesFactors(spec.b.lifting)
            ? model.getLiftRegisters()
            : model.getLiftRegistersOfE2m1();
    double latency = model.getLiftRegistersLatency() * config.getSubtiles();
    return combine({rows * ofRow, latency / config.getBlockParts()});
  }
  // Shared memory, and who issues, bound what all warps lift.
  double all = rows * model.getLift() * getLiftWork(spec.b.lifting);
  // Warps that have other stages wait at other times.
  double ofStage = model.getLiftLatency() + all * 4 / config.liftWarps;
  return combine({all, ofStage / config.getTurns()});
}

double MatmulConfigs::getComputeClocks(const TileConfig &config,
                                       const Waves &waves) const {
  double copies = getCopyClocks(config, waves, &Side::alwaysOutOfBounds);
  double worstCopies = getCopyClocks(config, waves, &Side::outOfBounds);
  // The epilogue of one warpgroup hides behind the main loop of the other with
  // ping-pong, unless it takes longer; that of the last tile behind nothing.
  // The ring is filled meanwhile.
  double issue =
      double(config.rows * config.cols) * spec.getEpilogueInstructions() / 128;
  double epilogue = getStoreClocks(config) + model.getIssue() * issue;
  // Sums of parts are written to shared memory, and read.
  epilogue += 2.0 * double(getPartBytes(config)) / double(kSharedBytes);
  double loop = waves.kBlocks * getBlockClocks(config, waves.activeBlocks) +
                (config.isPingPong() ? 0 : getCosts(spec, model).getDrain());
  if (spec.b.isLifted()) {
    double lift = waves.kBlocks * getLiftClocks(config);
    // Lifters and those who multiply wait for the ports of shared memory, and
    // for each other where the ring is short: one hides the other in part. In
    // registers nearly all is hidden, but lifting waits for the tensor core
    // during half of its clocks.
    loop = config.lifters ? joinClocks(loop, lift)
                          : combine({loop, lift + loop / 2});
  }
  double consume = waves.count * (loop + epilogue) - epilogue;
  if (config.isPingPong())
    consume = waves.count *
              std::max(loop + model.getIssue() * issue, (loop + epilogue) / 2);
  double produce = worstCopies + (waves.count - 1) * copies;
  return combine({consume, produce}) + epilogue;
}

double MatmulConfigs::getMemoryClocks(const TileConfig &config,
                                      const Waves &waves) const {
  WgmmaCostsModelAttr c = getCosts(spec, model);
  auto getElements = [&](const Side &side, const Side &other, double matrices,
                         double repeated) {
    double readers = other.groups / matrices;
    double repeats =
        std::clamp<double>(readers, 1, model.getMostRepeated()) - 1;
    double zeros = side.skippedFill == 1 ? waves.filled / waves.kBlocks : 1;
    return matrices * side.share *
           (side.extent * (1 + repeated * repeats) +
            c.getOutOfBoundsBytes() * side.totalOutOfBounds * readers * zeros);
  };
  // Each group of rows has a B of its own.
  double ofRows = config.swapped ? groupsOfRows : 1;
  double elements =
      getElements(waves.rows, waves.cols, ofRows, c.getRepeatedRows()) +
      getElements(waves.cols, waves.rows, groupsOfRows / ofRows,
                  c.getRepeatedCols());
  double bytes = batch * (elements * k * spec.a.getElementBytes() +
                          double(m) * spec.getResultCols(n) * resultBytes);
  double underWay = (config.stages - 1) * config.stageBlocks * kRowBytes *
                    waves.sum([](const Side &side) {
                      return side.used * side.share / side.sharers;
                    });
  // Where some blocks share a port, what these read takes as long as if all
  // did.
  auto getRate = [&](double blocks) {
    double ofBlock =
        blocks * 2 > waves.all ? c.getPairRate() / 2 : c.getOneRate();
    return std::min<double>({c.getMemoryRate(),
                             blocks * underWay / c.getMemoryLatency(),
                             blocks * ofBlock});
  };
  int64_t size = config.getClusterSize();
  double last = waves.blocksInLast / size / waves.items;
  return waves.uneven * bytes *
         ((1 - last) / getRate(waves.clusters * size) +
          last / getRate(waves.blocksInLast));
}

double MatmulConfigs::getShareOfParts(const TileConfig &config) const {
  // Two warps fill the ring, and more stages are under way. Of wider tiles
  // nobody knows.
  constexpr int64_t kMeasuredCols = 16;
  int64_t parts = std::min<int64_t>(config.getBlockParts(), 4);
  if (!spec.isMicroscaled() || parts < 2 || config.cols > kMeasuredCols ||
      model.getScaledParts() == 0)
    return 1;
  return model.getScaledParts() + model.getScaledPart() / double(parts);
}

double MatmulConfigs::getClocks(const TileConfig &config) const {
  WgmmaCostsModelAttr c = getCosts(spec, model);
  Waves waves = getWaves(config);
  double cost = combine(
      {getComputeClocks(config, waves), getMemoryClocks(config, waves)});
  cost *= getShareOfParts(config);
  if (config.clusterK)
    cost += waves.count *
            (model.getClusterReduce() +
             config.rows / 64.0 * config.cols * model.getClusterReducePart() *
                 (double(config.splitK * config.getBlockParts()) - 1));
  else if (config.splitK > 1)
    cost += waves.count *
            (c.getReduce() +
             (liftsInRegisters(config) ? model.getLiftReduce() : 0) +
             config.rows / 64.0 * config.cols *
                 (c.getReduceColumn() +
                  c.getReducePart() * config.splitK * config.getBlockParts()));
  if (config.getClusterSize() > 1)
    cost += c.getCluster();
  return cost;
}

double MatmulConfigs::getPowerClocks(const TileConfig &config) const {
  WgmmaCostsModelAttr c = getCosts(spec, model);
  double ideal = double(batch) * m * n * k * spec.a.getElementBytes() /
                 (double(target.getMmaRate()) * target.getMultiprocessors());
  double ofRows = 64.0 / config.rows, ofCols = 64.0 / config.cols;
  double energy = 1 + c.getEnergyOfCols() * ofCols +
                  c.getEnergyOfTile() * (ofRows + ofCols) -
                  (config.isPingPong() ? c.getPingPongEnergy() : 0);
  return c.getPower() * ideal * energy;
}

double MatmulConfigs::getCost(const TileConfig &config) const {
  if (cases.empty())
    return getCostOfExtents(config);
  double sum = 0;
  for (const MatmulConfigs &one : cases)
    sum += one.getCostOfExtents(config);
  return sum / double(cases.size());
}

double MatmulConfigs::getCostOfExtents(const TileConfig &config) const {
  // A board that may not take what the tensor core would slows down until it
  // may. With the clock the voltage falls: then energy counts as much as
  // clocks.
  double clocks = getClocks(config);
  double power = getPowerClocks(config);
  return getCosts(spec, model).getLaunch() +
         std::sqrt(clocks * std::max(clocks, power));
}
