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
using namespace mlir::fp8::sm89;

/// What the driver takes of each block's shared memory.
static constexpr int64_t kReservedBytes = 1024;

/// Registers of a thread beside its sums: fragments, addresses, counters.
static constexpr int64_t kOtherRegisters = 96;

bool sm89::promotesSums(const MatmulSpec &spec) {
  return spec.isScaled() && spec.accumulate == Accumulate::Promote;
}

/// Why no config multiplies operands with factors along K, or packed; empty if
/// they are neither.
static StringRef getMissing(const MatmulSpec &spec) {
  if (spec.a.isLifted() || spec.b.isLifted())
    return "expected no packed weights, for which Ada has no kernels yet";
  if (spec.isBlocked())
    return "expected no scale factors that change along K, for which Ada has "
           "no kernels yet";
  if (spec.getGrouping() == Grouping::K)
    return "expected no groups of K, for which Ada has no kernels yet";
  if (spec.hasAdjacentRows() && spec.a.major != Major::K)
    return "expected K to be the innermost dimension of A with groups of rows, "
           "as copies begin at multiples of 16 bytes";
  return "";
}

LogicalResult sm89::checkOperands(const MatmulSpec &spec, std::string &reason) {
  if (StringRef missing = getMissing(spec); !missing.empty()) {
    reason = missing.str();
    return failure();
  }
  for (auto [operand, name] : {std::pair{&spec.a, "A"}, {&spec.b, "B"}}) {
    if (!Mma::takes(operand->elementType)) {
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
  offsetFlag = offsetCols + config.getStages() * cols.getBytes();
  offsetGroups = offsetFlag + 16;
  sharedBytes =
      offsetGroups +
      (spec.isGrouped() ? GroupTable::getBytes(spec.getNumGroups()) : 0);
}

FailureOr<MatmulLayout> MatmulLayout::get(const MatmulSpec &spec,
                                          GemmConfigAttr config,
                                          GPUTargetAttr target,
                                          std::string &reason) {
  if (failed(checkOperands(spec, reason)))
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
      config.getSubtiles() * config.getRegisters() + kOtherRegisters;
  layout.resident = std::max<int64_t>(
      1, std::min((target.getSharedBytes() + kReservedBytes) /
                      (layout.sharedBytes + kReservedBytes),
                  target.getRegisters() / (registers * config.getThreads())));
  return layout;
}
