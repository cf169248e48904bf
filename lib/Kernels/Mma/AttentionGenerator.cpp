//===- AttentionGenerator.cpp - Attention kernels by mma.sync -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionGenerator.h"
#include "../Attention/AttentionGenerator.h"
#include "../Attention/AttentionSignature.h"
#include "AttentionMemory.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

/// Scores and sums that a thread has room for, beside what it computes of them.
static constexpr int64_t kMaxRegisters = 176;
/// Keys that share a step of the softmax if that is invariant: all invariant
/// operations have room for them.
static constexpr int64_t kInvariantKeys = 32;

FailureOr<AttentionMemory> AttentionMemory::get(const AttentionSpec &spec,
                                                AttentionConfigAttr config,
                                                GPUTargetAttr target,
                                                std::string &reason) {
  int64_t tileK = config.getTileK(), stages = config.getStages();
  if (failed(checkAttentionExtents(spec, tileK, reason)))
    return failure();
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  if (spec.hasFactorsOfPositions())
    return fail("expected factors for tensors or heads, but got factors for "
                "blocks of positions");
  if (spec.rounded)
    return fail("expected a result of 16 bits, but got codes");
  if (spec.invariant && tileK != kInvariantKeys)
    return fail("expected tile_k of {0} in invariant attention, but got {1}",
                kInvariantKeys, config);
  AttentionMemory memory;
  memory.q = SwizzledMatrix(spec.q, config.getTileQ(), spec.headDim);
  memory.k = SwizzledMatrix(spec.k, tileK, spec.headDim);
  memory.v = SwizzledMatrix(spec.v, tileK, spec.headDimOfV);
  int64_t offset = 0;
  auto place = [&](const SwizzledMatrix &matrix, int64_t count) {
    // Groups of 8 lines of 128 bytes.
    int64_t at = offset;
    offset += llvm::alignTo(matrix.getBytes(), 1024) * count;
    return at;
  };
  memory.offsetQ = place(memory.q, 1);
  memory.offsetK = place(memory.k, stages);
  memory.offsetV = place(memory.v, stages);
  memory.sharedBytes = offset;
  if (offset > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, offset);
  bool promotes = spec.accumulate == Accumulate::Promote;
  int64_t registers = tileK / 2 + tileK * spec.getElementBytes() / 8 +
                      spec.headDimOfV / 2 + (promotes ? 8 : 0);
  if (registers > kMaxRegisters)
    return fail("expected up to {0} registers of a thread for scores and sums, "
                "but {1} needs {2}",
                kMaxRegisters, config, registers);
  return memory;
}

namespace {
/// What attention by mma.sync has of its own.
struct MmaAttention {
  using Spec = AttentionSpec;
  using Config = AttentionConfigAttr;
  using Memory = AttentionMemory;
  using Signature = AttentionSignature;
  static constexpr auto describe = describeAttention;
  static constexpr auto build = buildAttention;

  static SmallVector<Config> getTiles(const AttentionSpec &spec,
                                      MLIRContext *context);
  static double getCost(const AttentionSpec &spec, Config config,
                        GPUTargetAttr target);
  static Config getLeast(const AttentionSpec &spec, MLIRContext *context) {
    int64_t keys =
        spec.invariant ? kInvariantKeys : 32 / spec.getElementBytes();
    return Config::get(context, /*tile_q=*/64, keys, /*stages=*/2);
  }
};
} // namespace

SmallVector<AttentionConfigAttr>
MmaAttention::getTiles(const AttentionSpec &spec, MLIRContext *context) {
  SmallVector<Config> tiles;
  for (int64_t tileQ : {128, 64})
    for (int64_t tileK : {128, 96, 64, 32, 16})
      for (int64_t stages : {4, 3, 2})
        tiles.push_back(Config::get(context, tileQ, tileK, stages));
  return tiles;
}

/// Queries that read keys together, unless there are no more than 64, and as
/// many keys as leave registers for what is computed of scores. Not measured.
double MmaAttention::getCost(const AttentionSpec &spec, Config config,
                             GPUTargetAttr) {
  bool isSmall = !ShapedType::isDynamic(spec.queries) && spec.queries <= 64;
  bool isUsual = config.getTileQ() == (isSmall ? 64 : 128);
  bool isCrowded =
      spec.mask || spec.cap || spec.dropThreshold || spec.headDimOfV > 128;
  double missing = std::abs(double(isCrowded ? 32 : 64) - config.getTileK());
  return (isUsual ? 0 : 1) + missing / 64 + 0.01 / config.getStages();
}

std::unique_ptr<KernelGenerator> mma::createAttentionGenerator() {
  return std::make_unique<AttentionGenerator<MmaAttention>>();
}
