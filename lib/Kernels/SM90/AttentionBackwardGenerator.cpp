//===- AttentionBackwardGenerator.cpp - Gradients of attention ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardGenerator.h"
#include "../Attention/AttentionGenerator.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
/// What Hopper's gradients of attention have of their own.
struct HopperGradients {
  using Spec = AttentionBackwardSpec;
  using Config = AttentionConfigAttr;
  using Memory = AttentionBackwardMemory;
  using Signature = AttentionBackwardSignature;
  static constexpr auto describe = describeAttentionBackward;
  static constexpr auto build = buildAttentionBackward;

  static Config make(MLIRContext *context, int64_t tileQ, int64_t stages) {
    return Config::get(context, tileQ, /*tile_k=*/128, stages,
                       /*tile_heads=*/1, /*split_tiles=*/0, /*polynomials=*/0,
                       AttentionTurn::None, AttentionMaxima::Tile);
  }
  static SmallVector<Config> getTiles(const Spec &, MLIRContext *context) {
    SmallVector<Config> tiles;
    for (int64_t tileQ : {128, 64})
      for (int64_t stages : {2, 3})
        tiles.push_back(make(context, tileQ, stages));
    return tiles;
  }
  static double getCost(const Spec &, Config config, GPUTargetAttr) {
    return double(config.getStages()) - double(config.getTileQ()) / 32;
  }
  static Config getLeast(const Spec &, MLIRContext *context) {
    return make(context, /*tileQ=*/64, /*stages=*/2);
  }
};
} // namespace

std::unique_ptr<KernelGenerator> sm90::createAttentionBackwardGenerator() {
  return std::make_unique<AttentionGenerator<HopperGradients>>();
}
