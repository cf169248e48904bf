//===- AttentionMemory.cpp - Shared memory of attention kernels -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionMemory.h"
#include "../Attention/AttentionSignature.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// PTX ISA, "Matrix Descriptor": start address, leading and stride offsets in
/// 16 bytes, the mode of the swizzle.
static Value makeDescriptor(KernelBuilder &b, Value address, int64_t leading,
                            int64_t stride, int64_t width) {
  int64_t mode = width == 128 ? 1 : width == 64 ? 2 : 3;
  Value low = arith::OrIOp::create(
      b, b.bitAnd(b.shiftRight(address, 4), 0x3fff), b.i32(leading >> 4 << 16));
  return arith::OrIOp::create(b, b.widen(low),
                              b.i64((stride >> 4 | mode << 30) << 32));
}

Value SharedMatrix::getDescriptor(KernelBuilder &b, Value address) const {
  // The leading offset is ignored with a swizzle.
  return makeDescriptor(b, address, /*leading=*/16, 8 * width, width);
}

Value SharedMatrix::getTransposedDescriptor(KernelBuilder &b,
                                            Value address) const {
  return makeDescriptor(b, address, getBoxBytes(), 8 * width, width);
}

/// What a thread of a warpgroup gets of 512 registers, in multiples of 8: of
/// the warpgroup that copies, and of those that multiply. Two blocks share
/// them.
static std::pair<int64_t, int64_t>
getRegisters(const AttentionSpec &spec, int64_t consumers, int64_t resident) {
  if (resident == 2)
    return {40, 216};
  if (consumers == 3)
    return {32, 160};
  // Who transposes needs some.
  return spec.isScaled ? std::pair<int64_t, int64_t>{40, 232}
                       : std::pair<int64_t, int64_t>{24, 240};
}

/// Says why if wgmma, bulk copies or rows do not fit the extents.
static LogicalResult checkExtents(const AttentionSpec &spec,
                                  AttentionConfigAttr config,
                                  std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  if (failed(checkAttentionExtents(spec, config.getTileK(), reason)))
    return failure();
  if (int64_t most = config.getQueriesOfTile();
      config.isForFewQueries() && (spec.queries < 1 || spec.queries > most))
    return fail("expected 1 to {0} queries, known when it is compiled, with "
                "split_tiles, but got {1}",
                most,
                ShapedType::isDynamic(spec.queries)
                    ? "?"
                    : std::to_string(spec.queries));
  // Another kernel of these would have other bits.
  if (spec.rounded && (spec.getHeadsOfFewQueries() || config.isForFewQueries()))
    return fail("expected a result of 16 bits of few queries, but got codes");
  if (spec.rounded && spec.headDimOfV % 32 != 0)
    return fail("expected values of a multiple of 32 columns for codes, but "
                "got {0}",
                spec.headDimOfV);
  if (int64_t keys = spec.getInvariantKeys();
      spec.invariant && (config.getTileK() != keys || config.getPolynomials()))
    return fail("expected tile_k of {0} and no polynomials in invariant "
                "attention, but got {1}",
                keys, config);
  if (config.getMaxima() == AttentionMaxima::Overflow) {
    // What is left out is no operand, and would not be seen; bits of an
    // invariant query are those that decoding has; and 16 bits are too large
    // from 2 on.
    if (spec.dropThreshold || spec.invariant)
      return fail("expected maxima of a tile with dropout and in invariant "
                  "attention, but got {0}",
                  config);
    if (spec.getElementBytes() == 2 && spec.factorOfP != 1)
      return fail("expected p_scale of 1 with numbers and {0}, but got {1}",
                  config, spec.factorOfP);
    // A row's maximum would be kept over tiles of other factors.
    if (spec.hasFactorsOfPositions())
      return fail("expected maxima of a tile with factors for blocks of "
                  "positions, but got {0}",
                  config);
  }
  // Numbers of dropout are drawn for rows that are queries of one head.
  if (spec.dropThreshold && config.getTileHeads() != 1)
    return fail("expected tile_heads of 1 with dropout, but got {0}",
                config.getTileHeads());
  // A tile of keys has one factor of each. Invariant ones may begin anywhere.
  constexpr int64_t kMaxPositions = std::numeric_limits<int32_t>::max();
  for (auto [name, positions] :
       llvm::zip_equal(StringRef("qkv"), spec.positionsOfFactor)) {
    if (positions && name != 'q' && positions % config.getTileK() != 0)
      return fail("expected factors of {0} for blocks of a multiple of tile_k, "
                  "{1}, but got blocks of {2} positions",
                  name, config.getTileK(), positions);
    if (positions > kMaxPositions)
      return fail("expected factors of {0} for blocks of at most {1} "
                  "positions, but got {2}",
                  name, kMaxPositions, positions);
    if (positions && spec.invariant)
      return fail("expected no factors for blocks of positions in invariant "
                  "attention, but got some of {0}",
                  name);
  }
  return success();
}

/// Whether a multiprocessor runs two blocks of few queries at a time, of
/// `sharedBytes` each.
static bool hasRoomForTwo(const AttentionSpec &spec, AttentionConfigAttr config,
                          GPUTargetAttr target, int64_t sharedBytes) {
  // The chip keeps 1 KiB of each block's (CUDA Programming Guide, "Technical
  // Specifications per Compute Capability").
  constexpr int64_t kReserved = 1024;
  // What ptxas has room for with 128 registers a thread, before setmaxnreg
  // (C7602): the accumulators of one wgmma.
  constexpr int64_t kMaxColumns = 192;
  return config.isForFewQueries() &&
         std::max(config.getTileK(), spec.headDimOfV) <= kMaxColumns &&
         2 * (sharedBytes + kReserved) <= target.getSharedBytes() + kReserved;
}

FailureOr<AttentionMemory> AttentionMemory::get(const AttentionSpec &spec,
                                                AttentionConfigAttr config,
                                                GPUTargetAttr target,
                                                std::string &reason) {
  if (failed(checkExtents(spec, config, reason)))
    return failure();
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  int64_t bytes = spec.getElementBytes(), tileK = config.getTileK();
  AttentionMemory memory;
  memory.q = SharedMatrix(spec.q, config.getTileQ(), spec.headDim);
  memory.k = SharedMatrix(spec.k, tileK, spec.headDim);
  memory.v = SharedMatrix(spec.v, tileK, spec.headDimOfV);
  memory.output = SharedMatrix(spec.output, config.getTileQ(), spec.headDimOfV);
  int64_t offset = 0;
  auto place = [&](int64_t bytes) {
    // Groups of 8 lines of 128 bytes.
    int64_t at = offset;
    offset += llvm::alignTo(bytes, 1024);
    return at;
  };
  memory.offsetQ = place(memory.q.getBytes());
  auto placeStages = [&](const SharedMatrix &matrix) {
    return place(llvm::alignTo(matrix.getBytes(), 1024) * config.getStages());
  };
  memory.offsetK = placeStages(memory.k);
  memory.offsetV = placeStages(memory.v);
  if (bytes == 1) {
    memory.transposedV = SharedMatrix(spec.v, spec.headDimOfV, tileK);
    memory.offsetTransposedV = placeStages(memory.transposedV);
  }
  // Full and empty ones of Q and of each ring, and the flag.
  bool hasFewQueries = config.isForFewQueries();
  bool hasFlag = hasFewQueries || config.loadsZero();
  int64_t barrierBytes = 16 * (1 + 3 * config.getStages()) + (hasFlag ? 16 : 0);
  // Codes have the room of numbers: tiles, and with these bits, are the same.
  SharedMatrix room(spec.rounded ? spec.rounded : spec.output,
                    config.getTileQ(), spec.headDimOfV);
  bool fitsInQ =
      room.getBytes() == memory.q.getBytes() && room.width == memory.q.width;
  bool hasRoom =
      offset + room.getBytes() + barrierBytes <= target.getSharedBytes();
  memory.offsetOutput = hasFewQueries || (fitsInQ && !hasRoom)
                            ? memory.offsetQ
                            : place(room.getBytes());
  memory.offsetBarriers = offset;
  memory.sharedBytes = offset + barrierBytes;
  memory.offsetFlag = memory.sharedBytes - 16;
  if (memory.sharedBytes > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, memory.sharedBytes);
  int64_t consumers = config.getConsumers();
  memory.threads = 128 * (consumers + 1);
  if (hasRoomForTwo(spec, config, target, memory.sharedBytes))
    memory.resident = 2;
  std::tie(memory.producerRegisters, memory.consumerRegisters) =
      getRegisters(spec, consumers, memory.resident);
  // S and the sums of P V, P in codes or halves, and with promotion a product.
  // Where S may be needed once more, there is P of two tiles beside it.
  bool promotes = spec.accumulate == Accumulate::Promote;
  bool keepsScores = config.getMaxima() == AttentionMaxima::Overflow;
  int64_t registers = tileK / 2 + tileK * bytes / 8 * (keepsScores ? 2 : 1) +
                      spec.headDimOfV / 2 * (promotes ? 2 : 1);
  if (int64_t most = memory.consumerRegisters - 20; registers > most)
    return fail("expected up to {0} registers of a thread for scores and sums, "
                "but {1} needs {2}",
                most, config, registers);
  return memory;
}
