//===- MatmulLayout.cpp - Where a matmul kernel keeps what ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulLayout.h"
#include "../Blocks/GroupTable.h"
#include "Mma.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

/// What the driver takes of each block's shared memory.
static constexpr int64_t kReservedBytes = 1024;

/// Registers of a thread beside its sums: fragments, addresses, counters, as
/// ptxas has them. Promotion has fragments of a whole K block.
static constexpr int64_t kOtherRegisters = 56, kPromotionRegisters = 96;

/// A thread's promoted sums beside which there is room for the fragments that a
/// K block of more than 16 rows has.
static constexpr int64_t kPromotedSums = 64;

bool mma::promotesSums(const MatmulSpec &spec, bool hasWideSums) {
  if (!spec.isScaled() || spec.accumulate != Accumulate::Promote)
    return false;
  return !hasWideSums || (spec.isBlocked() && !spec.isMicroscaled());
}

bool mma::hasWholeChunks(const MatmulSpec &spec) {
  if (ShapedType::isDynamic(spec.k) || spec.getGrouping() == Grouping::K)
    return false;
  return llvm::all_of(std::array{&spec.a, &spec.b}, [&](const auto *operand) {
    return spec.k * operand->getElementBytes() % (16 * operand->getSharing()) ==
           0;
  });
}

/// Factors in f32 that so many rows of a K block have.
static int64_t getScales(const OperandSpec &operand, int64_t rows) {
  if (!isBlockedAlongK(operand.scale) || isMicroscaled(operand.scale))
    return 0;
  return llvm::divideCeil(rows, getScaleRows(operand.scale));
}

WarpGrid WarpGrid::get(const MatmulSpec &spec, GemmConfigAttr config,
                       bool promotes) {
  int64_t rows = config.getRows(), cols = config.getCols();
  int64_t warps = config.getThreads() / 32;
  WarpGrid best{warps, 1};
  if (promotes && rows * cols > 32 * warps * kPromotedSums)
    return best;
  auto getReads = [&](WarpGrid grid) {
    return rows * grid.ofCols + cols * grid.ofRows;
  };
  for (int64_t ofCols : {2, 4}) {
    WarpGrid grid{warps / ofCols, ofCols};
    if (spec.getResultCols(cols) % (16 * ofCols) == 0 &&
        getReads(grid) < getReads(best))
      best = grid;
  }
  return best;
}

static const OperandSpec &getRowSpec(const MatmulSpec &spec,
                                     GemmConfigAttr config) {
  return config.getSwapAb() ? spec.b : spec.a;
}
static const OperandSpec &getColSpec(const MatmulSpec &spec,
                                     GemmConfigAttr config) {
  return config.getSwapAb() ? spec.a : spec.b;
}

static int64_t getColScales(const MatmulSpec &spec, GemmConfigAttr config) {
  int64_t cols = spec.getResultCols(config.getCols());
  return getScales(getColSpec(spec, config), cols) * (config.getCols() / cols);
}

int64_t mma::getFactorBytes(const MatmulSpec &spec, GemmConfigAttr config) {
  if (spec.isMicroscaled())
    return (config.getRows() + config.getCols()) *
           spec.a.getElementsOf(kRowBytes) / spec.a.getFactorK();
  return llvm::alignTo(
             4 * getScales(getRowSpec(spec, config), config.getRows()), 16) +
         llvm::alignTo(4 * getColScales(spec, config), 16);
}

/// Why no config multiplies factors of a byte; empty if one does.
static std::string getMissingFactors(const MatmulSpec &spec) {
  int64_t factorK = spec.a.getFactorK();
  if (ShapedType::isDynamic(spec.k) || spec.k % (4 * factorK) != 0)
    return llvm::formatv("expected a known K that is a multiple of {0}, with "
                         "factors of {1}",
                         4 * factorK, factorK);
  if (spec.getGrouping() == Grouping::K)
    return "expected no groups of K with factors of a byte";
  for (auto [operand, name] : {std::pair{&spec.a, "A"}, {&spec.b, "B"}})
    if (operand->major != Major::K || operand->factorMajor != Major::K)
      return llvm::formatv("expected K to be the innermost dimension of {0}, "
                           "whose factors run along it",
                           name);
  return "";
}

/// Why no config multiplies operands with factors along K, or packed; empty if
/// they are neither.
static std::string getMissing(const MatmulSpec &spec, GPUTargetAttr target) {
  if (spec.a.isLifted() || spec.b.isLifted())
    return "expected no packed weights, for which mma.sync has no kernels yet";
  if (spec.hasAdjacentRows() && spec.a.major != Major::K)
    return "expected K to be the innermost dimension of A with groups of rows, "
           "as copies begin at multiples of 16 bytes";
  if (spec.isMicroscaled() && multipliesFactors(target.getComputeCapability()))
    return getMissingFactors(spec);
  if (isMicroscaled(spec.a.scale) || isMicroscaled(spec.b.scale))
    return "expected no factors of a byte, which this GPU's tensor cores do "
           "not multiply";
  if (spec.hasAdjacentRows() && spec.a.scale == ScaleBlock::Block128)
    return "expected no blocks of 128 rows in groups of rows, which begin "
           "anywhere";
  return "";
}

LogicalResult mma::checkOperands(const MatmulSpec &spec, GPUTargetAttr target,
                                 std::string &reason) {
  if (std::string missing = getMissing(spec, target); !missing.empty()) {
    reason = missing;
    return failure();
  }
  for (auto [operand, name] : {std::pair{&spec.a, "A"}, {&spec.b, "B"}}) {
    if (!Mma::takes(operand->elementType, spec.isMicroscaled())) {
      reason = llvm::formatv("expected {0} of a type that the tensor core "
                             "multiplies, but got {1}",
                             name, operand->elementType);
      return failure();
    }
    if (operand->major != Major::K && operand->getElementBytes() != 2) {
      reason = llvm::formatv("expected K to be the innermost dimension of {0}, "
                             "which ldmatrix transposes only of 16-bit "
                             "elements, but they are {1}",
                             name, operand->elementType);
      return failure();
    }
  }
  return success();
}

MatmulLayout::MatmulLayout(const MatmulSpec &spec, GemmConfigAttr config,
                           bool promotes)
    : rows(getRowSpec(spec, config), config.getRows(), /*blocks=*/1),
      cols(getColSpec(spec, config), config.getCols(),
           /*blocks=*/1, /*part=*/spec.getResultCols(config.getCols())),
      colsPart(getColSpec(spec, config), spec.getResultCols(config.getCols()),
               /*blocks=*/1),
      warps(WarpGrid::get(spec, config, promotes)),
      subtiles(config.getRows() / (16 * warps.ofRows)),
      subtileStride(16 * warps.ofRows),
      warpCols(config.getCols() / warps.ofCols) {
  offsetCols = offsetRows + config.getStages() * rows.getBytes();
  if (spec.isMicroscaled()) {
    factorsOfStep = spec.a.getElementsOf(32) / spec.a.getFactorK();
    factorWords = spec.a.getElementsOf(kRowBytes) / (4 * spec.a.getFactorK());
  }
  offsetRowFactors = offsetCols + config.getStages() * cols.getBytes();
  offsetColFactors =
      offsetRowFactors + config.getStages() * getRowFactorBytes();
  rowScales = getScales(getRowSpec(spec, config), config.getRows());
  colScales = getColScales(spec, config);
  offsetRowScales = offsetColFactors + config.getStages() * getColFactorBytes();
  offsetColScales =
      offsetRowScales + config.getStages() * getScaleStride(/*ofRows=*/true);
  offsetFlag =
      offsetColScales + config.getStages() * getScaleStride(/*ofRows=*/false);
  offsetGroups = offsetFlag + 16;
  sharedBytes =
      offsetGroups +
      (spec.isGrouped() ? GroupTable::getBytes(spec.getNumGroups()) : 0);
}

FailureOr<MatmulLayout> MatmulLayout::get(const MatmulSpec &spec,
                                          GemmConfigAttr config,
                                          GPUTargetAttr target,
                                          std::string &reason) {
  if (failed(checkOperands(spec, target, reason)))
    return failure();
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
  if (config.getStore() == GemmStore::Pairs && !spec.canStoreInBulk())
    return fail("expected results whose rows are multiples of 16 bytes to "
                "store them in pairs, but got {0}",
                config);
  bool promotes =
      promotesSums(spec, hasWideSums(target.getComputeCapability()));
  if (config.getWholeChunks() && !hasWholeChunks(spec))
    return fail("expected a known K whose rows are multiples of 16 bytes to "
                "copy whole chunks, but got {0}",
                config);
  MatmulLayout layout(spec, config, promotes);
  // A line of rows that are innermost is the same for a thread's copies.
  for (const OperandTile *tile : {&layout.rows, &layout.colsPart})
    if (tile->isTransposed() &&
        !llvm::isPowerOf2_64(tile->getBytes() / kRowBytes))
      return fail("expected a power of two of rows that are innermost, but got "
                  "{0}",
                  config);
  // Factors of a block are loaded where a tile cuts none.
  for (auto [operand, extent] :
       {std::pair{&getRowSpec(spec, config), config.getRows()},
        {&getColSpec(spec, config), spec.getResultCols(config.getCols())}})
    if (operand->scale == ScaleBlock::Block128 && extent % 128 != 0 &&
        128 % extent != 0)
      return fail("expected tiles that cut no block of 128 rows, but got {0}",
                  config);
  if (layout.sharedBytes > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, layout.sharedBytes);
  int64_t registers = layout.subtiles * layout.getRegisters() +
                      (promotes ? kPromotionRegisters : kOtherRegisters);
  layout.resident = std::max<int64_t>(
      1, std::min((target.getSharedBytes() + kReservedBytes) /
                      (layout.sharedBytes + kReservedBytes),
                  target.getRegisters() / (registers * config.getThreads())));
  return layout;
}
