//===- SM90Cost.cpp - How long a matmul takes on Hopper -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The constants are fitted to times of every config on the shapes of
// benchmarks/gemm_shapes.py on an H200 (docs/Kernels.md, "Selection"). They
// absorb what the model leaves out, so that a single one is no measurement.

#include "SM90Cost.h"
#include "fp8/Kernels/Target.h"

using namespace mlir;
using namespace mlir::fp8;

/// 8-bit multiply-adds of a multiprocessor's tensor core in a clock.
static constexpr double kMultiplyRate = 4096;
/// Bytes a clock that a multiprocessor gets from L2; fewer where rows do not
/// start at cache lines.
static constexpr double kL2Rate = 49, kUnalignedL2Rate = 24;
/// Bytes a clock from memory: of one multiprocessor's share, and what one alone
/// can ask for.
static constexpr double kMemoryRate = 34;
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

/// Clocks of the multiprocessor with the most tiles, if memory is no limit.
static double getTileClocks(const MatmulSpec &spec, GemmConfigAttr config,
                            double share, double waves) {
  double rows = config.getRows(), cols = config.getCols();
  double elements = rows * cols;
  double multiply = elements * GemmConfigAttr::kTileK / kMultiplyRate / share;
  double load = (rows + cols / config.getCluster()) * GemmConfigAttr::kTileK /
                (spec.k % 128 == 0 ? kL2Rate : kUnalignedL2Rate);
  int64_t blocks = llvm::divideCeil(
      llvm::divideCeil(spec.k, GemmConfigAttr::kTileK), config.getSplitK());
  double mainLoop = blocks * std::max(multiply, load);
  double issue = elements * spec.getEpilogueInstructions() / 128;
  double store = kStore + elements * 2 / kStoreRate;
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
static double getMemoryClocks(const MatmulSpec &spec, double items,
                              double slots, int64_t cluster) {
  double m = spec.m, n = spec.n, k = spec.k;
  double bytes = spec.batch * (m * k + n * k + 2 * m * n);
  double full = std::floor(items / slots), rest = items - full * slots;
  double all = kMemoryRate * kSM90.multiprocessors;
  double clocks = bytes / items * full * slots / all;
  if (rest > 0)
    clocks += bytes / items / cluster / kMemoryRate;
  return clocks;
}

double fp8::getMatmulCostSM90(const MatmulSpec &spec, GemmConfigAttr config,
                              double share) {
  double items = double(llvm::divideCeil(spec.m, config.getClusterM())) *
                 llvm::divideCeil(spec.n, config.getClusterN()) * spec.batch *
                 config.getSplitK();
  double slots = double(kSM90.multiprocessors) / config.getCluster();
  double cost = std::max(
      getTileClocks(spec, config, share, std::ceil(items / slots)),
      kFill + getMemoryClocks(spec, items, slots, config.getCluster()));
  if (config.getSplitK() > 1)
    cost += kReduce + kReducePart * config.getSplitK();
  if (config.getCluster() > 1)
    cost += kCluster;
  return cost;
}
