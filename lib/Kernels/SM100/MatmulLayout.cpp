//===- MatmulLayout.cpp - Shared and tensor memory of matmuls -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulLayout.h"
#include "../Blocks/GroupTable.h"
#include "Tcgen05.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

/// Bytes of a warpgroup's staging buffer: a swizzle atom of each of its rows.
static constexpr int64_t kStagingBytes = 128 * kRowBytes;

/// Sums that a thread works on at a time, of both products of a pair: what
/// becomes of them lives beside them.
static constexpr int64_t kMaxChunkSums = 64;

/// Sums of a tile that a thread has registers for, and beside them for those of
/// a K block; with addresses of stores of one element each half as many.
static constexpr int64_t kMaxPromotedAccumulators = 128;

/// Stages of factors for promotion: they come before the operands, which wait
/// for room.
static constexpr int64_t kScaleStages = 8;

/// Columns that two sets of sums share come in so many: no rule of PTX, but
/// what kernels have that are known to run.
static constexpr int64_t kSharedStep = 32;

/// Registers of a thread in a warpgroup that neither multiplies sums nor keeps
/// them.
static constexpr int64_t kOtherRegisters = 40;

static bool isInBlocksOf128(ScaleBlock scale) {
  return scale == ScaleBlock::Row128 || scale == ScaleBlock::Block128;
}

bool sm100::promotesSums(const MatmulSpec &spec) {
  return isInBlocksOf128(spec.a.scale) && isInBlocksOf128(spec.b.scale);
}

/// Factors of promotion in a stage, of so many rows or columns of a tile, which
/// cut no blocks.
static int64_t getScalesPerStage(const OperandSpec &operand, int64_t extent) {
  return llvm::divideCeil(extent, getScaleRows(operand.scale));
}

/// Four are loaded at once.
static int64_t getScaleStride(int64_t count) {
  return llvm::alignTo(4 * count, 16);
}

int64_t sm100::getNumAccumulators(const MatmulSpec &spec,
                                  GemmConfigAttr config) {
  return promotesSums(spec) ? std::min(512 / config.getCols(), kMaxAccumulators)
                            : kAccumulators;
}

/// From four factors along K to the next four: those of a K block.
static int64_t getFactorSteps(const MatmulSpec &spec) {
  return spec.a.getElementsOf(kRowBytes) / (4 * spec.a.getFactorK());
}

/// Atoms of factors of a tile's columns, each of 128.
static int64_t getColFactors(GemmConfigAttr config) {
  return llvm::divideCeil(config.getCols(), 128);
}

/// Columns of tensor memory for the factors of a K block.
static int64_t getFactorColumns(const MatmulSpec &spec, GemmConfigAttr config) {
  if (!spec.isMicroscaled())
    return 0;
  return (1 + getColFactors(config)) * getFactorSteps(spec) * kFactorColumns;
}

int64_t sm100::getSharedColumns(const MatmulSpec &spec, GemmConfigAttr config) {
  int64_t needed = getNumAccumulators(spec, config) * config.getCols() +
                   getFactorColumns(spec, config);
  return llvm::alignTo(std::max<int64_t>(0, needed - kMemoryColumns),
                       kSharedStep);
}

int64_t sm100::getScaleBytes(const MatmulSpec &spec, int64_t rows, int64_t cols,
                             bool swapped) {
  if (!promotesSums(spec))
    return 0;
  return kScaleStages *
         (getScaleStride(getScalesPerStage(swapped ? spec.b : spec.a, rows)) +
          getScaleStride(getScalesPerStage(swapped ? spec.a : spec.b, cols)));
}

LogicalResult sm100::checkOperands(const MatmulSpec &spec,
                                   std::string &reason) {
  for (auto [operand, name] : {std::pair{&spec.a, "A"}, {&spec.b, "B"}})
    if (!Tcgen05::takes(operand->elementType)) {
      reason = llvm::formatv("expected {0} of a type that the tensor core "
                             "multiplies, but got {1}",
                             name, operand->elementType);
      return failure();
    }
  if (spec.b.isLifted()) {
    reason = "expected no packed weights beside A of E4M3";
    return failure();
  }
  if (spec.getGrouping() == Grouping::K) {
    reason = "expected no groups of K";
    return failure();
  }
  if (spec.hasAdjacentRows() && spec.a.major != Major::K) {
    reason = "expected K to be the innermost dimension of A with groups of "
             "rows, as bulk copies begin at multiples of 16 bytes";
    return failure();
  }
  if (spec.isBlocked() && !spec.isMicroscaled() && !promotesSums(spec)) {
    reason =
        "expected scale factors that change along K of both operands, in f32 "
        "for 128 of K, or the same ones of a byte";
    return failure();
  }
  if (promotesSums(spec) && spec.isDual()) {
    reason =
        "expected no dual matmul with scale factors in f32 that change along K";
    return failure();
  }
  // Four factors are copied at once.
  int64_t factorK = spec.a.getFactorK();
  if (spec.isMicroscaled() &&
      (ShapedType::isDynamic(spec.k) || spec.k % (4 * factorK) != 0)) {
    reason = llvm::formatv("expected a known K that is a multiple of {0}, with "
                           "factors of {1}",
                           4 * factorK, factorK);
    return failure();
  }
  for (auto [operand, name] : {std::pair{&spec.a, "A"}, {&spec.b, "B"}}) {
    if (spec.isBlocked() && operand->major != Major::K) {
      reason = llvm::formatv("expected K to be the innermost dimension of {0}, "
                             "whose factors run along it",
                             name);
      return failure();
    }
    if (operand->major != Major::K && operand->getElementBytes() > 2) {
      reason = llvm::formatv("expected K to be the innermost dimension of {0}, "
                             "which the tensor core transposes only of 8- and "
                             "16-bit elements, but they are {1}",
                             name, operand->elementType);
      return failure();
    }
  }
  return success();
}

/// The most columns that divide a tile's and that one bulk store brings, where
/// there is one.
static int64_t getChunkCols(const MatmulSpec &spec, GemmConfigAttr config) {
  if (config.getSplitK() > 1)
    return config.getCols();
  int64_t cols = spec.getResultCols(config.getCols());
  // Sums in registers are a warpgroup's own.
  if (promotesSums(spec))
    cols /= config.getEpilogueWarpgroups();
  int64_t bytes = spec.resultType.getIntOrFloatBitWidth() / 8;
  // Two warpgroups have registers for half as much, and so has one with
  // addresses of stores of one element each.
  bool inBulk = config.getStore() == GemmStore::TMA;
  int64_t most = spec.getResultCols(
      config.getEpilogueWarpgroups() == 1 && inBulk ? kMaxChunkSums
                                                    : kMaxChunkSums / 2);
  if (inBulk)
    most = std::min(most, kRowBytes / bytes);
  while (cols % most != 0)
    most /= 2;
  return most;
}

MatmulLayout::MatmulLayout(const MatmulSpec &spec, GemmConfigAttr config)
    : rows(config.getSwapAb() ? spec.b : spec.a, config.getBlockRows(),
           /*blocks=*/1),
      cols(config.getSwapAb() ? spec.a : spec.b, config.getBlockCols(),
           /*blocks=*/1, /*part=*/spec.getResultCols(config.getBlockCols())),
      colsPart(config.getSwapAb() ? spec.a : spec.b,
               spec.getResultCols(config.getBlockCols()), /*blocks=*/1) {}

FailureOr<MatmulLayout> MatmulLayout::get(const MatmulSpec &spec,
                                          GemmConfigAttr config,
                                          GPUTargetAttr target,
                                          std::string &reason) {
  if (failed(checkOperands(spec, reason)))
    return failure();
  MatmulLayout layout(spec, config);
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  if (spec.isDual() && (config.getSwapAb() || config.getCols() % 32 != 0 ||
                        config.getSplitK() > 1))
    return fail("expected columns of both products of a pair in a tile, halves "
                "of 16s, and all of K, but got {0}",
                config);
  if (spec.isGrouped() && config.getSplitK() > 1)
    return fail("expected no split-K with groups, but got {0}", config);
  if (config.isCTAPair() && spec.isDual())
    return fail("expected one block with both products of a pair, but got {0}",
                config);
  int64_t resultCols = spec.getResultCols(config.getCols());
  layout.threads = 128 * (1 + config.getEpilogueWarpgroups());
  if (promotesSums(spec) &&
      failed(layout.setPromotion(spec, config, target, reason)))
    return failure();
  if (spec.isMicroscaled()) {
    layout.rowFactors = 1;
    layout.colFactors = getColFactors(config);
    layout.factorSteps = getFactorSteps(spec);
  }
  layout.sharedColumns = getSharedColumns(spec, config);
  layout.accumulatorStride = config.getCols() - layout.sharedColumns;
  int64_t columns =
      layout.getFirstFactorColumn() + getFactorColumns(spec, config);
  layout.memoryColumns =
      std::max<int64_t>(32, llvm::PowerOf2Ceil(static_cast<uint64_t>(columns)));
  layout.chunkCols = getChunkCols(spec, config);
  if (resultCols / layout.chunkCols % config.getEpilogueWarpgroups() != 0)
    return fail("expected as many parts of a tile for each warpgroup, but {0} "
                "has {1}",
                config, resultCols / layout.chunkCols);
  if (config.getStore() == GemmStore::TMA) {
    layout.storeBytes =
        layout.chunkCols * spec.resultType.getIntOrFloatBitWidth() / 8;
    // Parts of K have all columns in one.
    if (layout.storeBytes < 16 || layout.storeBytes > kRowBytes ||
        !llvm::isPowerOf2_64(layout.storeBytes))
      return fail("expected rows of a tile that can be stored in slabs of 16 "
                  "to 128 bytes, but got {0} elements of {1}",
                  layout.chunkCols, spec.resultType);
  }
  layout.place(spec, config);
  if (layout.sharedBytes > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, layout.sharedBytes);
  return layout;
}

LogicalResult MatmulLayout::setPromotion(const MatmulSpec &spec,
                                         GemmConfigAttr config,
                                         GPUTargetAttr target,
                                         std::string &reason) {
  const OperandSpec &rowSpec = config.getSwapAb() ? spec.b : spec.a;
  const OperandSpec &colSpec = config.getSwapAb() ? spec.a : spec.b;
  int64_t sums = config.getCols() / config.getEpilogueWarpgroups();
  int64_t most = config.getStore() == GemmStore::TMA
                     ? kMaxPromotedAccumulators
                     : kMaxPromotedAccumulators / 2;
  // A warpgroup's columns then have one factor.
  bool cutsBlocks = colSpec.scale == ScaleBlock::Block128 && 128 % sums != 0;
  if (sums > most || cutsBlocks ||
      config.getCols() % config.getEpilogueWarpgroups() != 0) {
    reason = llvm::formatv("expected up to {0} columns for each warpgroup that "
                           "adds up K blocks, within one of factors, but {1} "
                           "has {2}",
                           most, config, sums);
    return failure();
  }
  rowScales = getScalesPerStage(rowSpec, config.getBlockRows());
  colScales = getScalesPerStage(colSpec, config.getCols());
  rowScaleStride = getScaleStride(rowScales);
  colScaleStride = getScaleStride(colScales);
  scaleStages = kScaleStages;
  accumulators = getNumAccumulators(spec, config);
  // The others leave theirs where the sums would not fit.
  if (config.getEpilogueWarpgroups() > 1) {
    int64_t all = target.getRegisters() / threads / 8 * 8 * threads;
    otherRegisters = kOtherRegisters;
    finisherRegisters = (all - 128 * otherRegisters) /
                        (128 * config.getEpilogueWarpgroups()) / 8 * 8;
  }
  return success();
}

void MatmulLayout::place(const MatmulSpec &spec, GemmConfigAttr config) {
  int64_t stages = config.getStages();
  offsetRows = 0;
  offsetCols = offsetRows + stages * rows.getBytes();
  offsetStaging = offsetCols + stages * cols.getBytes();
  offsetRing = offsetStaging;
  if (storeBytes)
    offsetRing +=
        config.getEpilogueWarpgroups() * config.getStaging() * kStagingBytes;
  // Each row of 16 bytes has the factors of four rows of an operand.
  offsetRowFactors = offsetRing;
  offsetColFactors = offsetRowFactors + stages * getRowFactorBytes();
  offsetRowScales = offsetColFactors + stages * getColFactorBytes();
  offsetColScales = offsetRowScales + scaleStages * rowScaleStride;
  offsetRing = offsetColScales + scaleStages * colScaleStride;
  // A full and an empty barrier for each stage, and for each set of sums; the
  // address in tensor memory; a word for the last block of a split tile.
  offsetAccumulators = offsetRing + stages * 16;
  offsetScaleRing = offsetAccumulators + getAccumulatorStages() * 16;
  offsetMemory = offsetScaleRing + scaleStages * 16;
  offsetFlag = offsetMemory + 4;
  offsetGroups = offsetFlag + 4;
  sharedBytes =
      offsetGroups +
      (spec.isGrouped() ? GroupTable::getBytes(spec.getNumGroups()) : 0);
}
