//===- Problem.cpp - Operands of a matmul on a GPU ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Problem.h"

#include "llvm/Support/MathExtras.h"

#include <random>

using namespace mlir;
using namespace mlir::fp8;

/// Of a byte that is repeated: 0.747 in f32 and bf16, 1.8 in f16, finite and
/// positive in every type.
static constexpr uint8_t kFill = 0x3f;
static constexpr size_t kRandomBytes = 16 << 20;
static constexpr int64_t kMostBuffers = 16;

ScaleExtents fp8::getScaleExtents(ScaleBlock block, int64_t rows, int64_t k) {
  int64_t blocksOfRows = llvm::divideCeil(rows, 128);
  int64_t blocksOfK = llvm::divideCeil(k, 128);
  switch (block) {
  case ScaleBlock::Tensor:
    return {1, 1};
  case ScaleBlock::Row:
    return {rows, 1};
  case ScaleBlock::Row128:
    return {rows, blocksOfK};
  case ScaleBlock::Block128:
    return {blocksOfRows, blocksOfK};
  }
  llvm_unreachable("every granularity has extents");
}

/// Codes of both signs and of magnitudes from 1/8 to 4: constants would cost
/// less power and run at higher clocks.
static std::vector<uint8_t> getRandomCodes(Type type, unsigned seed) {
  bool isE4M3 = isa<Float8E4M3FNType>(type);
  unsigned mantissaBits = isE4M3 ? 3 : 2, bias = isE4M3 ? 7 : 15;
  std::mt19937_64 random(seed);
  std::vector<uint8_t> codes(kRandomBytes);
  for (uint8_t &code : codes) {
    uint64_t bits = random();
    unsigned exponent = bias - 3 + (bits >> 8) % 5;
    unsigned mantissa = bits & ((1u << mantissaBits) - 1);
    code = (bits >> 16 & 1) << 7 | exponent << mantissaBits | mantissa;
  }
  return codes;
}

static size_t getBytes(Type type) {
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

static int64_t getCount(const MatmulSpec &spec,
                        const EpilogueOperandSpec &operand) {
  return (operand.alongBatch ? spec.batch : 1) * (operand.alongM ? spec.m : 1) *
         (operand.alongN ? spec.n : 1);
}

/// Bytes of one set of buffers but for factors, which are few.
static int64_t getBufferBytes(const MatmulSpec &spec) {
  int64_t bytes = spec.batch * ((spec.m + spec.n) * spec.k +
                                spec.m * spec.n * getBytes(spec.resultType));
  for (const EpilogueOperandSpec &operand : spec.operands)
    bytes += getCount(spec, operand) * getBytes(operand.elementType);
  return bytes;
}

llvm::Error Problem::addBuffers(ArrayRef<uint8_t> codesA,
                                ArrayRef<uint8_t> codesB) {
  Buffers added;
  auto take = [](void *&place, llvm::Expected<void *> block) -> llvm::Error {
    if (!block)
      return block.takeError();
    place = *block;
    return llvm::Error::success();
  };
  auto takeScales = [&](void *&place, ScaleBlock block, int64_t rows) {
    ScaleExtents extents = getScaleExtents(block, rows, spec.k);
    return take(place, memory.allocate(
                           spec.batch * extents.rows * extents.k * 4, kFill));
  };
  if (auto error =
          take(added.a, memory.allocate(spec.batch * spec.m * spec.k, codesA)))
    return error;
  if (auto error =
          take(added.b, memory.allocate(spec.batch * spec.n * spec.k, codesB)))
    return error;
  if (auto error = takeScales(added.scaleA, spec.a.scale, spec.m))
    return error;
  if (auto error = takeScales(added.scaleB, spec.b.scale, spec.n))
    return error;
  if (auto error =
          take(added.result, memory.allocate(spec.batch * spec.m * spec.n *
                                                 getBytes(spec.resultType),
                                             uint8_t(0))))
    return error;
  if (auto error = take(added.amax, memory.allocate(4, uint8_t(0))))
    return error;
  for (const EpilogueOperandSpec &operand : spec.operands)
    if (auto error = take(added.operands.emplace_back(),
                          memory.allocate(getCount(spec, operand) *
                                              getBytes(operand.elementType),
                                          kFill)))
      return error;
  buffers.push_back(std::move(added));
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Problem>>
Problem::create(const MatmulSpec &spec, ArrayRef<Candidate> candidates,
                GPU &gpu) {
  std::unique_ptr<Problem> problem(new Problem(spec, gpu));
  int64_t workspaceBytes = 0, counters = 0;
  for (const Candidate &candidate : candidates) {
    int64_t tiles = getTiles(spec, candidate.config);
    workspaceBytes =
        std::max(workspaceBytes, tiles * candidate.workspaceBytesPerTile);
    counters = std::max(counters, tiles);
  }
  for (auto [place, bytes] : {std::pair{&problem->workspace, workspaceBytes},
                              {&problem->counters, counters * 4}}) {
    auto block = problem->memory.allocate(bytes, uint8_t(0));
    if (!block)
      return block.takeError();
    *place = *block;
  }
  int64_t bytes = getBufferBytes(spec);
  int64_t count = llvm::divideCeil(2 * gpu.getInfo().l2_cache_size, bytes) + 1;
  std::vector<uint8_t> codesA = getRandomCodes(spec.a.elementType, /*seed=*/1);
  std::vector<uint8_t> codesB = getRandomCodes(spec.b.elementType, /*seed=*/2);
  for (int64_t i = 0, e = std::clamp<int64_t>(count, 2, kMostBuffers); i < e;
       ++i)
    if (auto error = problem->addBuffers(codesA, codesB))
      return error;
  return problem;
}
