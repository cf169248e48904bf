//===- AttentionBackwardGenerator.cpp - Gradients on Blackwell ------------===//
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
using namespace mlir::fp8::sm100;

namespace {
/// What Blackwell's gradients of attention have of their own.
struct BlackwellGradients {
  using Spec = AttentionBackwardSpec;
  using Config = AttentionConfigAttr;
  using Memory = AttentionBackwardMemory;
  using Signature = AttentionBackwardSignature;
  static constexpr auto describe = describeAttentionBackward;
  static constexpr auto build = buildAttentionBackward;

  static Config make(MLIRContext *context, int64_t stages) {
    return Config::get(context, Memory::kRows, Memory::kRows, stages,
                       /*polynomials=*/0, /*tile_heads=*/1, /*split_tiles=*/0);
  }
  static SmallVector<Config> getTiles(const Spec &, MLIRContext *context) {
    return {make(context, 2), make(context, 1)};
  }
  /// Two stages of queries, where there is room. Not measured.
  static double getCost(const Spec &, Config config, GPUTargetAttr) {
    return std::abs(double(config.getStages()) - 2);
  }
  static Config getLeast(const Spec &, MLIRContext *context) {
    return make(context, 1);
  }
};
} // namespace

std::unique_ptr<KernelGenerator> sm100::createAttentionBackwardGenerator() {
  return std::make_unique<AttentionGenerator<BlackwellGradients>>();
}
