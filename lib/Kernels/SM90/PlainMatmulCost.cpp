//===- PlainMatmulCost.cpp - Time of matmuls in high precision ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// A block multiplies K blocks while its producer brings the next ones; the
// slower of the two counts, or memory, for all blocks. The constants, in clocks
// and bytes a clock unless said otherwise, are fitted to times of some 2,000
// kernels on random shapes on an H200 by benchmarks/fit/plain_matmul.py; its
// plain_matmul_model.py is this model over arrays. They absorb what the model
// leaves out, so that a single one is no measurement.

#include "MatmulLayout.h"
#include "PlainMatmul.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

/// Of the tensor core's rate: with ping-pong, of one consumer, and of several;
/// and what a block loses to others that are active, if all are.
static constexpr double kPingPongShare = 0.9986, kSingleShare = 0.9704,
                        kCooperativeShare = 0.9744, kContention = 0.2128;
/// For each wave of a K block, whatever it holds.
static constexpr double kWave = 139.6;
/// Writing a line narrower than 128 bytes to shared memory.
static constexpr double kNarrowLine = 3.041;
/// What the two multiprocessors that share a port to L2 get through it; what
/// operands ask for in excess whose lines do not start at cache lines; what
/// remains of requests that a cluster shares falls with this power of its
/// blocks.
static constexpr double kPortRate = 182.3, kMisaligned = 0.2744,
                        kSharing = 0.2083;
/// Each bulk copy.
static constexpr double kBox = 27.61;
/// Waiting for such an operand with innermost rows, for each cluster that reads
/// it at about the same time.
static constexpr double kContended = 1.919;
/// Of one copy, while the others of the ring are under way.
static constexpr double kLatency = 1860;
/// Without clusters of 4, blocks that share ports get in each other's way.
static constexpr double kCrowded = 1.031;
/// Rows out of bounds, which bulk copies fill with zeros slowly: each at the
/// block's port, at L2 for every active block, and of a byte of memory.
static constexpr double kBeyond = 0.3132, kBeyondAll = 0.03098,
                        kBeyondBytes = 0.5323;
/// Storing a tile in bulk: at all, and for a slab of a wave; directly: for a
/// column of 64 rows.
static constexpr double kStore = 1277, kSlab = 102, kDirect = 18.22;
/// Memory: the rate, how long a copy takes, and of a byte that another tile
/// brings again at about the same time, up to three times.
static constexpr double kMemoryRate = 2271, kMemoryLatency = 1438,
                        kRepeatedRows = 0.3828, kRepeatedCols = 0.2198;
static constexpr int64_t kMostRepeated = 4;
/// Adding up parts of K: at all, for a column of 64 rows, and for each part of
/// it.
static constexpr double kReduce = 2440, kReduceColumn = 18.27,
                        kReducePart = 2.942;
static constexpr double kLaunch = 2647, kCluster = 698.4;
/// Multiprocessors that clusters of 4 and 8 reach.
static constexpr int64_t kReached4 = 120, kReached8 = 104;
/// Instructions a clock of a scheduler in an epilogue; and what they take from
/// the tensor core meanwhile. Not of the fit, whose matmuls have none.
static constexpr double kIssue = 0.5, kIssueDisturbance = 0.5;

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

struct PlainMatmul::Side {
  double extent, width;
  bool isTransposed, isNarrow, isMisaligned;
  /// Copies that bring it, and blocks that share them.
  double boxes, sharers;
  /// Tiles, and clusters along them.
  double tiles, groups;
  /// Rows of a tile in bounds; and out of bounds in every tile, in the last
  /// one, and in all of them.
  double used, alwaysBeyond, beyond, totalBeyond;
};

PlainMatmul::Side PlainMatmul::getSide(const PlainConfig &config,
                                       bool ofRows) const {
  const OperandSpec &operand =
      ofRows ? getRows(config.swapped) : getCols(config.swapped);
  int64_t extent = ofRows != config.swapped ? m : n;
  int64_t width = ofRows ? config.rows : config.cols;
  int64_t sharers = ofRows ? config.clusterCols : config.cluster;
  int64_t splitters = ofRows ? config.cluster : config.clusterCols;
  OperandTile tile(operand, ofRows ? width : spec.getResultCols(width),
                   /*blocks=*/1);
  Side side;
  side.extent = extent;
  side.width = width;
  side.isTransposed = tile.isTransposed();
  side.isNarrow = tile.getSwizzle() < kRowBytes;
  int64_t innermost = side.isTransposed ? extent : k;
  side.isMisaligned = innermost * operand.getElementBytes() % kRowBytes != 0;
  side.boxes = double(width) / tile.getBoxRows();
  side.sharers = sharers;
  ArrayRef<int64_t> extents = ofRows != config.swapped ? ms : ns;
  int64_t tiles = countTiles(extents, width);
  int64_t groups = countTiles(extents, width * splitters);
  side.tiles = tiles;
  side.groups = groups;
  side.used = std::min(width, extent);
  side.alwaysBeyond = width - side.used;
  // A tile that only completes a cluster is all out of bounds.
  side.beyond = groups * splitters > tiles
                    ? width
                    : std::min(width, tiles * width - extent);
  side.totalBeyond = groups * splitters * width - extent;
  return side;
}

/// Of the tensor core, for one K block.
double PlainMatmul::getBlockClocks(const PlainConfig &config,
                                   double activeBlocks) const {
  double rows = config.rows, cols = config.cols;
  double share = config.isPingPong()     ? kPingPongShare
                 : config.consumers == 1 ? kSingleShare
                                         : kCooperativeShare;
  double multiply =
      rows * std::max(cols, 16.0) * kRowBytes / target.getMmaRate() / share;
  // Both operands come from shared memory, for each 64 rows.
  double read = rows / 64 * (64 + cols);
  return combine({multiply, read, kWave * config.getWaves()}) *
         (1 + kContention * activeBlocks / target.getMultiprocessors());
}

double PlainMatmul::getStoreClocks(const PlainConfig &config) const {
  double columns = config.rows / 64.0 * config.cols;
  if (config.swapped || !storesInBulk)
    return kDirect * columns;
  int64_t bytes = spec.getResultCols(config.cols) * resultBytes;
  int64_t width = std::max<int64_t>(getStoreBytes(bytes), 16);
  return kStore + kSlab * config.getWaves() * llvm::divideCeil(bytes, width);
}

double PlainMatmul::getCost(const PlainConfig &config) const {
  Side rows = getSide(config, /*ofRows=*/true);
  Side cols = getSide(config, /*ofRows=*/false);
  auto sum = [&](auto get) { return get(rows) + get(cols); };

  // Rounds of tiles over the multiprocessors; the last one may be smaller.
  double all = target.getMultiprocessors();
  int64_t size = config.getClusterSize();
  double reached = size == 8   ? std::min<double>(all, kReached8)
                   : size == 4 ? std::min<double>(all, kReached4)
                               : all;
  double slots = std::floor(reached / size);
  double items = rows.groups * cols.groups * batch * config.splitK;
  double rounds = std::ceil(items / slots);
  double activeBlocks = std::min(items, slots) * size;
  double blocksInLast = (items - (rounds - 1) * slots) * size;
  double kBlocksOfPart = std::ceil(double(kBlocks) / config.splitK);

  // The producer's K block: copies into shared memory, through the port to L2,
  // and their latency.
  bool sharesPorts = activeBlocks * 2 > all;
  double ports = sharesPorts ? 2 : 1;
  double crowded = sharesPorts && size < 4 ? kCrowded : 1;
  double lines = kNarrowLine * sum([](const Side &side) {
                   return side.isNarrow * side.used;
                 });
  double requested = sum([](const Side &side) {
    return side.used * kRowBytes * (side.isMisaligned ? 1 + kMisaligned : 1) *
           std::pow(side.sharers, -kSharing);
  });
  double boxes =
      kBox * sum([](const Side &side) { return side.boxes / side.sharers; });
  double latency = kLatency / (config.stages - 1);
  auto getReaders = [&](const Side &side, const Side &other) {
    return side.isTransposed && side.isMisaligned
               ? std::min(other.groups, activeBlocks / size)
               : 0;
  };
  double contended =
      kContended * (getReaders(rows, cols) + getReaders(cols, rows));
  auto getFeed = [&](double beyond) {
    double port = ports * (requested / kPortRate + kBeyond * beyond) + boxes;
    return crowded * combine({lines, port, latency,
                              kBeyondAll * activeBlocks * beyond}) +
           contended;
  };
  double feed = getFeed(
      sum([](const Side &side) { return side.alwaysBeyond / side.sharers; }));
  double worstFeed =
      getFeed(sum([](const Side &side) { return side.beyond / side.sharers; }));

  // The epilogue of one warpgroup hides behind the main loop of the other with
  // ping-pong, unless it takes longer; that of the last tile behind nothing.
  // The ring is filled meanwhile.
  double issue =
      double(config.rows * config.cols) * spec.getEpilogueInstructions() / 128;
  double epilogue = getStoreClocks(config) + issue / kIssue;
  double loop = kBlocksOfPart * getBlockClocks(config, activeBlocks);
  double consume = rounds * (loop + epilogue) - epilogue;
  if (config.isPingPong())
    consume = rounds *
              std::max(loop + kIssueDisturbance * issue, (loop + epilogue) / 2);
  double produce = kBlocksOfPart * (worstFeed + (rounds - 1) * feed);
  double compute = combine({consume, produce}) + epilogue;

  // Until memory has delivered everything.
  auto getElements = [](const Side &side, const Side &other, double repeated) {
    double repeats = std::min<double>(other.groups, kMostRepeated) - 1;
    return side.extent * (1 + repeated * repeats) +
           kBeyondBytes * side.totalBeyond * other.groups;
  };
  double elements = getElements(rows, cols, kRepeatedRows) +
                    getElements(cols, rows, kRepeatedCols);
  double bytes = batch * (elements * k * spec.a.getElementBytes() +
                          double(m) * n * resultBytes);
  double underWay = (config.stages - 1) * kRowBytes * sum([](const Side &side) {
                      return side.used / side.sharers;
                    });
  auto getRate = [&](double blocks) {
    return std::min(kMemoryRate, blocks * underWay / kMemoryLatency);
  };
  double last = blocksInLast / size / items;
  double memory =
      crowded * bytes *
      ((1 - last) / getRate(slots * size) + last / getRate(blocksInLast));

  double cost = kLaunch + combine({compute, memory});
  if (config.splitK > 1)
    cost +=
        rounds * (kReduce + config.rows / 64.0 * config.cols *
                                (kReduceColumn + kReducePart * config.splitK));
  if (size > 1)
    cost += kCluster;
  return cost;
}
