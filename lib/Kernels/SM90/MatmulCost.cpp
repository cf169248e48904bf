//===- MatmulCost.cpp - What a matmul costs on Hopper ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The constants are fitted to times of every config on the shapes of
// benchmarks/gemm_shapes.py on an H200, and to what large products take for
// long (docs/Kernels.md, "Selection"). They absorb what the model leaves out,
// so that a single one is no measurement.

#include "MatmulGenerator.h"

using namespace mlir;
using namespace mlir::fp8;

/// What is left of L2's rate where rows do not start at cache lines.
static constexpr double kUnalignedL2 = 24.0 / 49;
/// What launches have between them, however close they follow each other.
static constexpr double kLaunch = 2500;
/// Until the first bytes have come.
static constexpr double kFill = 3700;
/// A tile's way to memory: fixed, and bytes a clock.
static constexpr double kStore = 750, kStoreRate = 45;
/// Adding up parts of K: fixed, and for each part.
static constexpr double kReduce = 10500, kReducePart = 600;
/// The blocks of a cluster wait for each other as they begin and end.
static constexpr double kCluster = 600;
/// With ping-pong, what a store takes from the other warpgroup's main loop.
static constexpr double kStoreDisturbance = 0.36;
/// Instructions a clock of a scheduler in an epilogue; and what they take from
/// the tensor core meanwhile, with which they share the register file.
static constexpr double kIssue = 0.5, kIssueDisturbance = 0.5;

/// Clocks that the tensor core needs for a product's energy if it may take what
/// the board has, over those that it needs at its full rate: what is left of
/// the clock when it never waits. Voltage falls with the clock, so that a clock
/// less is half of that less in time (fitted: 0.40 to 0.50).
static constexpr double kPower = 2.5;

/// Whether the rows of an operand start at cache lines.
static bool hasAlignedRows(const MatmulSpec &spec, const OperandSpec &operand,
                           int64_t rows) {
  int64_t extent = operand.major == Major::K ? spec.k : rows;
  return extent * operand.getElementBytes() % 128 == 0;
}

/// Clocks of the multiprocessor with the most tiles, if memory is no limit.
static double getTileClocks(const MatmulSpec &spec, GemmConfigAttr config,
                            GPUTargetAttr target, double waves) {
  double rows = config.getRows(), cols = config.getCols();
  double elements = rows * cols;
  double share = getMainLoopRates(spec, config).share;
  double multiply = elements * kRowBytes / target.getMmaRate() / share;
  bool isAligned = hasAlignedRows(spec, spec.a, spec.m) &&
                   hasAlignedRows(spec, spec.b, spec.n);
  double load = (rows / config.getClusterCols() + cols / config.getCluster()) *
                kRowBytes /
                (target.getL2Rate() * (isAligned ? 1.0 : kUnalignedL2));
  int64_t blockK = kRowBytes / spec.a.getElementBytes();
  int64_t blocks =
      llvm::divideCeil(llvm::divideCeil(spec.k, blockK), config.getSplitK());
  double mainLoop = blocks * std::max(multiply, load);
  double issue = elements * spec.getEpilogueInstructions() / 128;
  double store =
      kStore + rows * spec.getResultCols(config.getCols()) * 2 / kStoreRate;
  if (config.getSchedule() == GemmSchedule::Cooperative)
    return waves * (mainLoop + store + issue / kIssue);
  // The epilogue of one warpgroup hides behind the main loop of the other,
  // unless it takes longer; that of the last tile behind nothing.
  double epilogue = store + issue / kIssue;
  double hidden = kStoreDisturbance * store + kIssueDisturbance * issue;
  return waves * std::max(mainLoop + hidden, (mainLoop + epilogue) / 2) +
         epilogue;
}

/// Clocks until memory has delivered everything once. The last, partial wave of
/// tiles cannot ask for all that memory has.
static double getMemoryClocks(const MatmulSpec &spec, GPUTargetAttr target,
                              double items, double slots, int64_t cluster) {
  double m = spec.m, n = spec.n, k = spec.k;
  double bytes =
      spec.batch * ((m * k + n * k) * spec.a.getElementBytes() + 2 * m * n);
  double full = std::floor(items / slots), rest = items - full * slots;
  double rate = target.getMemoryRate();
  double clocks =
      bytes / items * full * slots / (rate * target.getMultiprocessors());
  if (rest > 0)
    clocks += bytes / items / cluster / rate;
  return clocks;
}

/// If all tensor cores multiplied all the time.
static double getIdealClocks(const MatmulSpec &spec, GPUTargetAttr target) {
  double m = spec.m, n = spec.n, k = spec.k;
  return spec.batch * m * n * k * spec.a.getElementBytes() /
         (double(target.getMmaRate()) * target.getMultiprocessors());
}

double fp8::getMatmulCost(const MatmulSpec &spec, GemmConfigAttr config,
                          GPUTargetAttr target) {
  if (!spec.isScaled())
    return getPlainMatmulCost(spec, config, target);
  double items =
      double(spec.getNumTiles(config.getClusterM(), config.getClusterN())) *
      config.getSplitK();
  double slots = double(target.getMultiprocessors()) / config.getClusterSize();
  double cost =
      std::max(getTileClocks(spec, config, target, std::ceil(items / slots)),
               kFill + getMemoryClocks(spec, target, items, slots,
                                       config.getClusterSize()));
  if (config.getSplitK() > 1)
    cost += kReduce + kReducePart * config.getSplitK();
  if (config.getClusterSize() > 1)
    cost += kCluster;
  // A board that may not take what the tensor core would slows down until it
  // may: then energy counts as much as clocks.
  double power = kPower * getIdealClocks(spec, target) *
                 getMainLoopRates(spec, config).energy;
  return kLaunch + std::sqrt(cost * std::max(cost, power));
}
