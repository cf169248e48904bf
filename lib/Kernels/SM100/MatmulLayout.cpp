//===- MatmulLayout.cpp - Shared and tensor memory of matmuls -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulLayout.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

/// Bytes of a warpgroup's staging buffer: a swizzle atom of each of its rows.
static constexpr int64_t kStagingBytes = 128 * kRowBytes;

/// Sums that a thread works on at a time, of both products of a pair: what
/// becomes of them lives beside them.
static constexpr int64_t kMostChunkSums = 64;

LogicalResult sm100::checkOperands(const MatmulSpec &spec,
                                   std::string &reason) {
  if (spec.isGrouped()) {
    reason = "expected no groups of rows or of K";
    return failure();
  }
  if (spec.isBlocked() && !spec.isMicroscaled()) {
    reason = "expected factors in f32 that change along K to be known powers "
             "of two, which tensor cores multiply as E8M0; others leave them "
             "idle";
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
    if (spec.isMicroscaled() && operand->major != Major::K) {
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
  int64_t bytes = spec.resultType.getIntOrFloatBitWidth() / 8;
  // Two warpgroups have registers for half as much, and so has one with
  // addresses of stores of one element each.
  bool inBulk = config.getStore() == GemmStore::TMA;
  int64_t most = spec.getResultCols(config.getFinishers() == 1 && inBulk
                                        ? kMostChunkSums
                                        : kMostChunkSums / 2);
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
  if (spec.isPair() && (config.getSwapAb() || config.getCols() % 32 != 0 ||
                        config.getSplitK() > 1))
    return fail("expected columns of both products of a pair in a tile, halves "
                "of 16s, and all of K, but got {0}",
                config);
  if (config.isPaired() && spec.isPair())
    return fail("expected one block with both products of a pair, but got {0}",
                config);
  int64_t resultCols = spec.getResultCols(config.getCols());
  layout.threads = 128 * (1 + config.getFinishers());
  int64_t columns = kAccumulators * config.getCols();
  if (spec.isMicroscaled()) {
    layout.rowFactors = 1;
    layout.colFactors = llvm::divideCeil(config.getCols(), 128);
    layout.factorSteps = layout.rows.getBlockK() / (4 * spec.a.getFactorK());
    columns += (layout.rowFactors + layout.colFactors) * layout.factorSteps *
               kFactorColumns;
  }
  layout.memoryColumns =
      std::max<int64_t>(32, llvm::PowerOf2Ceil(static_cast<uint64_t>(columns)));
  if (layout.memoryColumns > 512)
    return fail(
        "expected up to 512 columns of tensor memory, but {0} needs {1}",
        config, columns);
  layout.chunkCols = getChunkCols(spec, config);
  if (resultCols / layout.chunkCols % config.getFinishers() != 0)
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
  layout.place(config);
  if (layout.sharedBytes > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, layout.sharedBytes);
  return layout;
}

void MatmulLayout::place(GemmConfigAttr config) {
  int64_t stages = config.getStages();
  offsetRows = 0;
  offsetCols = offsetRows + stages * rows.getBytes();
  offsetStaging = offsetCols + stages * cols.getBytes();
  offsetRing = offsetStaging;
  if (storeBytes)
    offsetRing += config.getFinishers() * config.getStaging() * kStagingBytes;
  // Each row of 16 bytes has the factors of four rows of an operand.
  offsetRowFactors = offsetRing;
  offsetColFactors = offsetRowFactors + stages * getRowFactorBytes();
  offsetRing = offsetColFactors + stages * getColFactorBytes();
  // A full and an empty barrier for each slot, and for each set of sums; the
  // address in tensor memory; a word for the last block of a split tile.
  offsetAccumulators = offsetRing + stages * 16;
  offsetMemory = offsetAccumulators + kAccumulators * 16;
  offsetFlag = offsetMemory + 4;
  sharedBytes = offsetFlag + 4;
}
