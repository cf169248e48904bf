//===- AttentionMemory.cpp - Where an attention kernel has what -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionMemory.h"
#include "../Attention/AttentionSignature.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

/// A tensor memory's columns, and the fewest that can be allocated (PTX ISA,
/// "Tensor Memory Allocation").
static constexpr int64_t kMaxColumns = 512, kMinColumns = 32;

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
  if (spec.rounded)
    return fail("expected a result of 16 bits, but got codes");
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
  memory.offsetK = place(memory.k, config.getStages());
  memory.offsetV = place(memory.v, config.getStages());
  memory.offsetOutput = place(memory.output, 4 * halves);
  // Full and empty ones of Q, K, V, scores and sums.
  memory.offsetBarriers = offset;
  memory.offsetAddress =
      offset + 16 * (1 + 2 * halves + 2 * config.getStages());
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
  return memory;
}
