//===- MatmulGenerator.cpp - Matmul kernels for Hopper --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulGenerator.h"
#include "../Matmul/MatmulGenerator.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
/// What Hopper's matmuls have of their own. Tiles, stages, clusters and
/// schedules change no bits: each element of the result, or of each part of K,
/// is summed by one warpgroup, along K.
struct HopperMatmuls {
  using Config = GemmConfigAttr;
  using Layout = MatmulLayout;
  static constexpr TensorCoreInstruction kInstruction =
      TensorCoreInstruction::WGMMA;
  static constexpr auto getCandidates = getMatmulCandidates;
  static constexpr auto getCost = getMatmulCost;
  static constexpr auto getForm = getMatmulForm;
  static constexpr auto build = buildMatmul;

  static bool promotes(const MatmulSpec &spec) {
    return spec.accumulate == Accumulate::Promote;
  }
  static int64_t getParts(Config config) { return config.getPartsOfK(); }
  static int64_t getStageBlocks(Config config) {
    return config.getStageBlocks();
  }

  /// The cheapest without a list of all.
  static FailureOr<KernelConfigAttrInterface> select(const MatmulSpec &spec,
                                                     GPUTargetAttr target,
                                                     std::string &reason,
                                                     MatmulSelect) {
    FailureOr<GemmConfigAttr> config = selectMatmulConfig(spec, target, reason);
    if (failed(config))
      return failure();
    return KernelConfigAttrInterface(*config);
  }

  static std::string describe(const MatmulSpec &, GemmConfigAttr,
                              GPUTargetAttr) {
    return "";
  }
};
} // namespace

std::unique_ptr<KernelGenerator> sm90::createMatmulGenerator() {
  return std::make_unique<MatmulGenerator<HopperMatmuls>>();
}
