//===- AttentionMemory.cpp - Where an attention kernel has what -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionMemory.h"
#include "../Attention/AttentionSignature.h"
#include "AttentionQuarters.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

/// A tensor memory's columns, and the fewest that can be allocated (PTX ISA,
/// "Tensor Memory Allocation").
static constexpr int64_t kMaxColumns = 512, kMinColumns = 32;

/// Says why if a tile of few queries does not fit what is asked for.
static LogicalResult checkFewQueries(const AttentionSpec &spec,
                                     AttentionConfigAttr config,
                                     std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  if (int64_t most = config.getQueriesOfTile();
      spec.queries < 1 || spec.queries > most)
    return fail("expected 1 to {0} queries, known when it is compiled, with "
                "split_tiles, but got {1}",
                most,
                ShapedType::isDynamic(spec.queries)
                    ? "?"
                    : std::to_string(spec.queries));
  // Numbers of dropout are drawn for tiles of queries of one head.
  if (spec.dropThreshold)
    return fail("expected split_tiles of 0 with dropout, but got {0}",
                config.getSplitTiles());
  // Parts of keys would have other bits than all of a kernel's of many queries.
  if (spec.invariant)
    return fail("expected split_tiles of 0 in invariant attention, but got {0}",
                config.getSplitTiles());
  return success();
}

/// Whether a multiprocessor runs two blocks of few queries at a time.
static bool hasRoomForTwo(const AttentionMemory &memory, GPUTargetAttr target) {
  // The chip keeps 1 KiB of each block's (CUDA Programming Guide, "Technical
  // Specifications per Compute Capability").
  constexpr int64_t kReserved = 1024;
  return 2 * memory.columns <= kMaxColumns &&
         2 * (memory.sharedBytes + kReserved) <=
             target.getSharedBytes() + kReserved;
}

FailureOr<AttentionMemory> AttentionMemory::get(const AttentionSpec &spec,
                                                AttentionConfigAttr config,
                                                GPUTargetAttr target,
                                                std::string &reason) {
  int64_t tileK = config.getTileK(), halves = config.getHalves();
  if (failed(checkAttentionExtents(spec, tileK, reason)))
    return failure();
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  bool hasFewQueries = config.isForFewQueries();
  if (hasFewQueries && failed(checkFewQueries(spec, config, reason)))
    return failure();
  if (spec.rounded)
    return fail("expected a result of 16 bits, but got codes");
  if (spec.hasFactorsOfPositions())
    return fail("expected factors for tensors or heads, but got factors for "
                "blocks of positions");
  if (spec.invariant &&
      (tileK != kInvariantKeys || config.getPolynomials() != 0))
    return fail("expected tile_k of {0} and no polynomials in invariant "
                "attention, but got {1}",
                kInvariantKeys, config);
  AttentionMemory memory;
  int64_t columns = halves * (tileK + spec.headDimOfV);
  if (columns > kMaxColumns)
    return fail("expected up to {0} columns of tensor memory, but {1} needs "
                "{2}",
                kMaxColumns, config, columns);
  memory.columns = std::max(
      static_cast<int64_t>(llvm::bit_ceil(static_cast<uint64_t>(columns))),
      kMinColumns);
  memory.q = SwizzledMatrix(spec.q, config.getTileQ(), spec.headDim);
  memory.k = SwizzledMatrix(spec.k, tileK, spec.headDim);
  memory.v = SwizzledMatrix(spec.v, tileK, spec.headDimOfV);
  SwizzledMatrix whole(spec.output, kStoredRows, spec.headDimOfV);
  memory.output =
      SwizzledMatrix(spec.output, kStoredRows, whole.getBoxColumns());
  int64_t offset = 0;
  auto place = [&](const SwizzledMatrix &matrix, int64_t count) {
    // Groups of 8 lines of 128 bytes.
    int64_t at = offset;
    offset += llvm::alignTo(matrix.getBytes(), 1024) * count;
    return at;
  };
  memory.offsetQ = place(memory.q, 1);
  memory.offsetScratch = memory.offsetQ;
  if (hasFewQueries)
    offset = std::max(offset, memory.offsetScratch +
                                  AttentionQuarters::getScratchBytes());
  memory.offsetK = place(memory.k, config.getStages());
  memory.offsetV = place(memory.v, config.getStages());
  memory.offsetOutput = place(memory.output, hasFewQueries ? 0 : 4 * halves);
  // Full and empty ones of Q, K, V, scores and sums.
  memory.offsetBarriers = offset;
  memory.offsetAddress =
      offset + 16 * (1 + 2 * halves + 2 * config.getStages());
  memory.offsetFlag = memory.offsetAddress + 8;
  memory.sharedBytes = memory.offsetAddress + 16;
  if (memory.sharedBytes > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, memory.sharedBytes);
  memory.threads = 128 * (halves + 1);
  // One half leaves as many as a thread can have.
  if (halves == 2) {
    memory.softmaxRegisters = 216;
    memory.otherRegisters = 72;
  }
  if (hasFewQueries && hasRoomForTwo(memory, target)) {
    memory.resident = 2;
    memory.softmaxRegisters = 184;
    memory.otherRegisters = 72;
  }
  return memory;
}
