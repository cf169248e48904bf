//===- AttentionGenerator.cpp - Attention kernels for Blackwell -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionGenerator.h"
#include "../Attention/AttentionGenerator.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

namespace {
/// What Blackwell's attention has of its own. Sums of codes have as many bits
/// as those of numbers: none are promoted.
struct BlackwellAttention {
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
    return Config::get(context, kQueries, keys, /*stages=*/1,
                       /*polynomials=*/0);
  }
};
} // namespace

/// Exponentials of 16 that are polynomials. 128 x 128 codes of 128 columns are
/// multiplied twice in 512 clocks, and exponentiated in 1024, by the rates of a
/// B200 (NVIDIA, "CUDA C++ Programming Guide", arithmetic throughput). Not
/// measured; numbers of 16 bits have as long products, and keep exact powers.
static int64_t getPolynomials(const AttentionSpec &spec) {
  return spec.getElementBytes() == 1 && !spec.invariant ? 4 : 0;
}

SmallVector<AttentionConfigAttr>
BlackwellAttention::getTiles(const AttentionSpec &spec, MLIRContext *context) {
  SmallVector<Config> tiles;
  for (int64_t tileQ : {256, 128})
    for (int64_t tileK : {128, 96, 64, 32, 16})
      for (int64_t stages : {4, 3, 2, 1})
        tiles.push_back(
            Config::get(context, tileQ, tileK, stages, getPolynomials(spec)));
  return tiles;
}

/// Twice 128 queries, of which one half is exponentiated while the other one is
/// multiplied, unless there are no more than 128; then as many keys as there is
/// room for, and two stages of them or more. Elements of a mask, what bends
/// scores, words of dropout, and what says which keys there are take registers
/// beside these.
double BlackwellAttention::getCost(const AttentionSpec &spec, Config config,
                                   GPUTargetAttr) {
  bool isSmall =
      !ShapedType::isDynamic(spec.queries) && spec.queries <= kQueries;
  bool isUsual = config.getTileQ() == (isSmall ? kQueries : 2 * kQueries);
  bool hasOwnKeys =
      spec.hasKeyLengths || spec.hasKeyStarts || spec.hasKeyRanges;
  int64_t keys = spec.mask || spec.cap || spec.dropThreshold ? 64
                 : hasOwnKeys                                ? 96
                                                             : 128;
  double missingKeys = std::abs(double(keys - config.getTileK())) / 128;
  return (isUsual ? 0 : 8) + missingKeys +
         (config.getStages() == 1 ? 0.5 : 0.0) + 0.01 / config.getStages();
}

std::unique_ptr<KernelGenerator> sm100::createAttentionGenerator() {
  return std::make_unique<AttentionGenerator<BlackwellAttention>>();
}
