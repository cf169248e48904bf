//===- PlainMatmul.cpp - Configs of matmuls in high precision -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The configs of a matmul of operands in high precision are not a table but all
// that its extents suggest, ordered by a model of their time. Its constants are
// fitted to times of some 900 configs on random shapes on an H200, and judged
// by others (docs/Kernels.md, "Selection"). They absorb what the model leaves
// out, so that a single one is no measurement.

#include "MatmulGenerator.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

/// Extents that stand for unknown ones.
static constexpr int64_t kUsualExtent = 4096;
/// Bytes of shared memory for barriers and alignment.
static constexpr int64_t kReserved = 1296;

namespace {
/// How rows of a tile are divided among consumers; "rows" and "cols" as
/// MatmulContext has them.
struct RowConfig {
  int64_t rows;
  GemmSchedule schedule;
  int64_t consumers;
};

/// A config without what follows from the rest of it.
struct PlainConfig {
  int64_t rows, cols;
  GemmSchedule schedule;
  int64_t consumers;
  bool swapped;
  int64_t cluster, clusterCols, splitK, stages, staging;

  bool isPingPong() const { return schedule == GemmSchedule::PingPong; }
  int64_t getWaves() const {
    return rows / (64 * (isPingPong() ? 1 : consumers));
  }
};

/// What of a matmul its cost depends on.
class PlainMatmul {
public:
  PlainMatmul(const MatmulSpec &spec, GPUTargetAttr target);

  /// All that may be worth a thought.
  SmallVector<PlainConfig> getConfigs() const;
  /// An estimate of the clocks.
  double getCost(const PlainConfig &config) const;
  GemmConfigAttr getAttr(const PlainConfig &config) const;

private:
  void addConfigs(bool swapped, SmallVectorImpl<PlainConfig> &configs) const;
  /// Takes as many stages as there is room for; false if that is too few.
  bool setStages(PlainConfig &config) const;
  double getBlockClocks(const PlainConfig &config, double activeBlocks) const;
  double getTileStoreClocks(const PlainConfig &config) const;
  double getMemoryClocks(const PlainConfig &config, double activeBlocks) const;

  const OperandSpec &getRows(bool swapped) const {
    return swapped ? spec.b : spec.a;
  }
  const OperandSpec &getCols(bool swapped) const {
    return swapped ? spec.a : spec.b;
  }

  const MatmulSpec &spec;
  GPUTargetAttr target;
  int64_t m, n, k, batch, kBlocks, resultBytes;
  bool storesInBulk;
};
} // namespace

PlainMatmul::PlainMatmul(const MatmulSpec &spec, GPUTargetAttr target)
    : spec(spec), target(target) {
  auto known = [](int64_t extent, int64_t otherwise) {
    return ShapedType::isDynamic(extent) ? otherwise
                                         : std::max<int64_t>(extent, 1);
  };
  m = known(spec.m, kUsualExtent);
  n = known(spec.n, kUsualExtent);
  k = known(spec.k, kUsualExtent);
  batch = known(spec.batch, 1);
  kBlocks = llvm::divideCeil(k * spec.a.getElementBytes(), kRowBytes);
  resultBytes = spec.resultType.getIntOrFloatBitWidth() / 8;
  // Rows of the result must be multiples of 16 bytes for bulk copies.
  storesInBulk =
      !ShapedType::isDynamic(spec.n) && spec.n * resultBytes % 16 == 0;
}

//===----------------------------------------------------------------------===//
// Configs
//===----------------------------------------------------------------------===//

static constexpr auto kCooperative = GemmSchedule::Cooperative;
static constexpr auto kPingPong = GemmSchedule::PingPong;

static constexpr RowConfig kRowConfigs[] = {
    {64, kPingPong, 2},     {128, kPingPong, 2},    {64, kCooperative, 1},
    {128, kCooperative, 2}, {192, kCooperative, 3}, {256, kCooperative, 2},
};
static constexpr std::pair<int64_t, int64_t> kClusters[] = {
    {1, 1}, {2, 1}, {1, 2}, {4, 1}, {1, 4}, {2, 2}, {4, 2}, {2, 4},
};
static constexpr int64_t kSplits[] = {1, 2, 3, 4, 6, 8};

/// Widths, multiples of `step` from `least` to 256, that cut `extent` into
/// equal parts.
static SmallVector<int64_t> getWidths(int64_t extent, int64_t step,
                                      int64_t least) {
  SmallVector<int64_t> widths;
  for (int64_t width = 256; width >= least; width -= step) {
    int64_t parts = llvm::divideCeil(extent, width);
    if (int64_t(llvm::alignTo(llvm::divideCeil(extent, parts), step)) == width)
      widths.push_back(width);
  }
  // A narrower operand than any takes the narrowest.
  if (widths.empty())
    widths.push_back(llvm::alignTo(least, step));
  return widths;
}

void PlainMatmul::addConfigs(bool swapped,
                             SmallVectorImpl<PlainConfig> &configs) const {
  int64_t rowExtent = swapped ? n : m, colExtent = swapped ? m : n;
  // Narrower swizzles than 64 bytes cost more copies than they save.
  bool isTransposed = getCols(swapped).major == Major::MN;
  int64_t step = isTransposed ? 32 : swapped ? 8 : 16;
  int64_t least = !swapped ? 32 : m > 512 ? 64 : 8;
  SmallVector<int64_t> widths = getWidths(colExtent, step, least);
  if (swapped && isTransposed)
    for (int64_t width : {8, 16})
      if (width >= colExtent)
        widths.push_back(width);
  int64_t multiprocessors = target.getMultiprocessors();
  for (const RowConfig &row : kRowConfigs) {
    if (swapped && row.schedule == kPingPong)
      continue;
    int64_t rowTiles = llvm::divideCeil(rowExtent, row.rows);
    for (int64_t cols : widths) {
      int64_t colTiles = llvm::divideCeil(colExtent, cols);
      for (auto [cluster, clusterCols] : kClusters) {
        if (rowTiles < cluster || colTiles < clusterCols)
          continue;
        for (int64_t splitK : kSplits) {
          // Parts pay where there are few tiles of a long K.
          if (splitK > 1 &&
              (row.schedule == kPingPong || kBlocks / splitK < 8 ||
               rowTiles * colTiles * batch * splitK > 2 * multiprocessors))
            continue;
          PlainConfig config{row.rows,      cols,    row.schedule,
                             row.consumers, swapped, cluster,
                             clusterCols,   splitK,  0,
                             /*staging=*/2};
          if (setStages(config))
            configs.push_back(config);
        }
      }
    }
  }
}

bool PlainMatmul::setStages(PlainConfig &config) const {
  auto getStages = [&](int64_t staging) {
    int64_t used = kReserved;
    if (!config.swapped && storesInBulk)
      used += config.consumers * staging * 64 * kRowBytes;
    int64_t stages = (target.getSharedBytes() - used) /
                     ((config.rows + config.cols) * kRowBytes + 16);
    return std::min<int64_t>(stages, 16);
  };
  config.stages = getStages(config.staging);
  if (config.stages < 4 && getStages(1) > config.stages) {
    config.staging = 1;
    config.stages = getStages(1);
  }
  return config.stages >= 3;
}

SmallVector<PlainConfig> PlainMatmul::getConfigs() const {
  SmallVector<PlainConfig> configs;
  addConfigs(/*swapped=*/false, configs);
  addConfigs(/*swapped=*/true, configs);
  return configs;
}

GemmConfigAttr PlainMatmul::getAttr(const PlainConfig &config) const {
  bool isSmall = config.swapped && config.cols <= 64;
  bool isAlone = config.isPingPong() || config.consumers == 1;
  bool isBulk = !config.swapped && storesInBulk;
  return GemmConfigAttr::get(
      target.getContext(), config.swapped ? config.cols : config.rows,
      config.swapped ? config.rows : config.cols, config.stages,
      config.consumers, config.schedule, /*group=*/isSmall ? 1 : 16,
      config.splitK, config.swapped,
      isBulk ? GemmStore::TMA : GemmStore::Direct, config.cluster,
      config.clusterCols, config.staging,
      /*pending=*/isAlone && config.splitK == 1, /*overlap=*/false,
      getMatmulEpilogue(spec, config.getWaves(), config.cols, isBulk));
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// Of the tensor core's rate: with ping-pong, and of one to three consumers.
static constexpr double kPingPongShare = 0.464;
static constexpr double kShares[] = {0.412, 0.410, 0.399};
/// Clocks for a row of a slot that shared memory takes in.
static constexpr double kFill = 2.185;
/// Bytes a clock from L2, for all multiprocessors; what copies of lines along
/// the rows cost more.
static constexpr double kL2Rate = 3910, kTransposed = 1.320;
/// Clocks for each line that a bulk copy asks for.
static constexpr double kLine = 1.482;
/// Clocks of one copy, and more of it for each doubling of a cluster.
static constexpr double kLatency = 1950, kClusterLatency = 0.288;
/// Clocks of a K block whatever it holds, and for each wave.
static constexpr double kBlock = 80, kWave = 20;
/// A tile's way to memory: fixed, and bytes a clock in bulk and directly; how
/// much of it ping-pong does not hide.
static constexpr double kStore = 2690, kBulkRate = 34.4, kDirectRate = 13.6,
                        kStoreDisturbance = 0.333;
/// Memory: bytes a clock, clocks of a copy, and what another block that asks
/// for the same at about the same time costs, up to so many.
static constexpr double kMemoryRate = 1540, kMemoryLatency = 1560,
                        kRepeated = 0.271, kMostRepeated = 4;
/// Adding up parts of K: fixed, and bytes a clock.
static constexpr double kReduce = 3230, kReduceRate = 28.3;
/// What a cluster costs, and multiprocessors that clusters of 4 and 8 reach.
static constexpr double kCluster = 216, kReached4 = 120, kReached8 = 104;
/// Instructions a clock of a scheduler in an epilogue; and what they take from
/// the tensor core meanwhile.
static constexpr double kIssue = 0.5, kIssueDisturbance = 0.5;

/// Close to the largest: what is limited by one resource is slowed down by
/// others a little.
static double combine(std::initializer_list<double> clocks) {
  double sum = 0;
  for (double value : clocks)
    sum += value * value * value * value;
  return std::sqrt(std::sqrt(sum));
}

/// Lines that copies of so many rows of a slot ask for.
static double getLines(const OperandSpec &operand, int64_t rows) {
  if (operand.major == Major::K)
    return rows;
  int64_t bytes = rows * operand.getElementBytes(), width = kRowBytes;
  while (width > 16 && bytes % width != 0)
    width /= 2;
  return double(kRowBytes / operand.getElementBytes()) * (bytes / width);
}

/// Of the main loop, for one K block.
double PlainMatmul::getBlockClocks(const PlainConfig &config,
                                   double activeBlocks) const {
  double rows = config.rows, cols = config.cols;
  const OperandSpec &rowSpec = getRows(config.swapped);
  const OperandSpec &colSpec = getCols(config.swapped);
  auto getBytes = [](const OperandSpec &operand, double rows) {
    return rows * kRowBytes * (operand.major == Major::K ? 1 : kTransposed);
  };
  double share =
      config.isPingPong() ? kPingPongShare : kShares[config.consumers - 1];
  double multiply =
      rows * std::max(cols, 16.0) * kRowBytes / target.getMmaRate() / share;
  double l2 = (getBytes(rowSpec, rows) / config.clusterCols +
               getBytes(colSpec, cols) / config.cluster) *
              activeBlocks / kL2Rate;
  double blocks = config.cluster * config.clusterCols;
  double latency = kLatency * (1 + kClusterLatency * std::log2(blocks)) /
                   (config.stages - 1);
  double lines = kLine * (getLines(rowSpec, config.rows) / config.clusterCols +
                          getLines(colSpec, config.cols) / config.cluster);
  return std::max(
      combine({multiply, kFill * (rows + cols), l2, latency, lines}),
      kBlock + kWave * config.getWaves());
}

double PlainMatmul::getTileStoreClocks(const PlainConfig &config) const {
  double rate = config.swapped || !storesInBulk ? kDirectRate : kBulkRate;
  double warpgroups =
      config.isPingPong() ? 1 : std::max(config.consumers / 2.0, 0.5);
  return kStore +
         double(config.rows * config.cols) * resultBytes / rate / warpgroups;
}

/// Until memory has delivered everything.
double PlainMatmul::getMemoryClocks(const PlainConfig &config,
                                    double activeBlocks) const {
  double rowExtent = config.swapped ? n : m, colExtent = config.swapped ? m : n;
  auto getRepeats = [](double extent, int64_t width, int64_t sharers) {
    double tiles = std::ceil(std::ceil(extent / width) / sharers);
    return 1 + kRepeated * (std::min(tiles, kMostRepeated) - 1);
  };
  double elements =
      rowExtent * getRepeats(colExtent, config.cols, config.clusterCols) +
      colExtent * getRepeats(rowExtent, config.rows, config.cluster);
  double bytes = batch * (elements * k * spec.a.getElementBytes() +
                          double(m) * n * resultBytes);
  double underWay = activeBlocks * (config.stages - 1) * kRowBytes *
                    (double(config.rows) / config.clusterCols +
                     double(config.cols) / config.cluster);
  return bytes / std::min(kMemoryRate, underWay / kMemoryLatency);
}

double PlainMatmul::getCost(const PlainConfig &config) const {
  double rowExtent = config.swapped ? n : m, colExtent = config.swapped ? m : n;
  double size = config.cluster * config.clusterCols;
  double items = std::ceil(rowExtent / (config.rows * config.cluster)) *
                 std::ceil(colExtent / (config.cols * config.clusterCols)) *
                 batch * config.splitK;
  double all = target.getMultiprocessors();
  double slots = (size == 8   ? std::min(all, kReached8)
                  : size == 4 ? std::min(all, kReached4)
                              : all) /
                 size;
  double rounds = std::ceil(items / slots);
  double activeBlocks = std::min(items, slots) * size;
  double mainLoop = std::ceil(double(kBlocks) / config.splitK) *
                    getBlockClocks(config, activeBlocks);
  double store = getTileStoreClocks(config);
  double issue =
      double(config.rows * config.cols) * spec.getEpilogueInstructions() / 128;
  double epilogue = store + issue / kIssue;
  double compute = rounds * (mainLoop + epilogue);
  // The epilogue of one warpgroup hides behind the main loop of the other,
  // unless it takes longer; that of the last tile behind nothing.
  if (config.isPingPong())
    compute = rounds * std::max(mainLoop + kStoreDisturbance * store +
                                    kIssueDisturbance * issue,
                                (mainLoop + epilogue) / 2) +
              epilogue;
  double cost = combine({compute, getMemoryClocks(config, activeBlocks)});
  if (config.splitK > 1)
    cost += kReduce +
            double(config.rows * config.cols) * 4 * config.splitK / kReduceRate;
  if (size > 1)
    cost += kCluster;
  return cost;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

double fp8::getPlainMatmulCost(const MatmulSpec &spec, GemmConfigAttr config,
                               GPUTargetAttr target) {
  PlainConfig plain{config.getRows(),        config.getCols(),
                    config.getSchedule(),    config.getConsumers(),
                    config.getSwapAb(),      config.getCluster(),
                    config.getClusterCols(), config.getSplitK(),
                    config.getStages(),      config.getStaging()};
  return PlainMatmul(spec, target).getCost(plain);
}

SmallVector<GemmConfigAttr>
fp8::getPlainMatmulCandidates(const MatmulSpec &spec, GPUTargetAttr target,
                              size_t most) {
  PlainMatmul matmul(spec, target);
  SmallVector<PlainConfig> configs = matmul.getConfigs();
  SmallVector<std::pair<double, size_t>> order;
  for (auto [i, config] : llvm::enumerate(configs))
    order.emplace_back(matmul.getCost(config), i);
  llvm::sort(order);
  SmallVector<GemmConfigAttr> candidates;
  for (auto [cost, i] : order) {
    if (candidates.size() == most)
      break;
    GemmConfigAttr attr = matmul.getAttr(configs[i]);
    std::string reason;
    if (succeeded(MatmulLayout::get(spec, attr, target, reason)))
      candidates.push_back(attr);
  }
  return candidates;
}
