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

bool mma::promotesSums(const MatmulSpec &spec, GPUTargetAttr target) {
  return spec.isScaled() && spec.accumulate == Accumulate::Promote &&
         !hasWideSums(target.getComputeCapability());
}

int64_t mma::getFactorBytes(const MatmulSpec &spec, int64_t rows) {
  return spec.isMicroscaled()
             ? rows * spec.a.getElementsOf(kRowBytes) / spec.a.getFactorK()
             : 0;
}

/// Why no config multiplies factors of a byte; empty if one does.
static std::string getMissingFactors(const MatmulSpec &spec) {
  int64_t factorK = spec.a.getFactorK();
  if (ShapedType::isDynamic(spec.k) || spec.k % (4 * factorK) != 0)
    return llvm::formatv("expected a known K that is a multiple of {0}, with "
                         "factors of {1}",
                         4 * factorK, factorK);
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
  if (spec.getGrouping() == Grouping::K)
    return "expected no groups of K, for which mma.sync has no kernels yet";
  if (spec.hasAdjacentRows() && spec.a.major != Major::K)
    return "expected K to be the innermost dimension of A with groups of rows, "
           "as copies begin at multiples of 16 bytes";
  if (spec.isMicroscaled() && multipliesFactors(target.getComputeCapability()))
    return getMissingFactors(spec);
  if (spec.isBlocked())
    return "expected no scale factors that change along K, for which "
           "mma.sync has no kernels yet";
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

MatmulLayout::MatmulLayout(const MatmulSpec &spec, GemmConfigAttr config)
    : rows(config.getSwapAb() ? spec.b : spec.a, config.getRows(),
           /*blocks=*/1),
      cols(config.getSwapAb() ? spec.a : spec.b, config.getCols(),
           /*blocks=*/1, /*part=*/spec.getResultCols(config.getCols())),
      colsPart(config.getSwapAb() ? spec.a : spec.b,
               spec.getResultCols(config.getCols()), /*blocks=*/1) {
  offsetCols = offsetRows + config.getStages() * rows.getBytes();
  if (spec.isMicroscaled()) {
    factorsOfStep = spec.a.getElementsOf(32) / spec.a.getFactorK();
    factorWords = spec.a.getElementsOf(kRowBytes) / (4 * spec.a.getFactorK());
  }
  offsetRowFactors = offsetCols + config.getStages() * cols.getBytes();
  offsetColFactors =
      offsetRowFactors + config.getStages() * getRowFactorBytes();
  offsetFlag = offsetColFactors + config.getStages() * getColFactorBytes();
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
  MatmulLayout layout(spec, config);
  // A line of rows that are innermost is the same for a thread's copies.
  for (const OperandTile *tile : {&layout.rows, &layout.colsPart})
    if (tile->isTransposed() &&
        !llvm::isPowerOf2_64(tile->getBytes() / kRowBytes))
      return fail("expected a power of two of rows that are innermost, but got "
                  "{0}",
                  config);
  if (layout.sharedBytes > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, layout.sharedBytes);
  int64_t registers =
      config.getSubtiles() * config.getRegisters() +
      (promotesSums(spec, target) ? kPromotionRegisters : kOtherRegisters);
  layout.resident = std::max<int64_t>(
      1, std::min((target.getSharedBytes() + kReservedBytes) /
                      (layout.sharedBytes + kReservedBytes),
                  target.getRegisters() / (registers * config.getThreads())));
  return layout;
}
