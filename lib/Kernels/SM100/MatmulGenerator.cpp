//===- MatmulGenerator.cpp - Matmul kernels for Blackwell -----------------===//
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
using namespace mlir::fp8::sm100;

namespace {
/// What Blackwell's matmuls have of their own. Each element of the result is
/// summed in tensor memory, along all of its part of K, whoever issues the
/// instructions, and in which block its row is: tiles, stages, pairs of blocks
/// and swapped operands change no bits. Promoted are K blocks whose factors the
/// tensor core does not multiply, and nothing else.
struct BlackwellMatmuls {
  using Config = GemmConfigAttr;
  using Layout = MatmulLayout;
  static constexpr TensorCoreInstruction kInstruction =
      TensorCoreInstruction::TCGen05;
  static constexpr auto getCandidates = getMatmulCandidates;
  static constexpr auto getCost = getMatmulCost;
  static constexpr auto promotes = promotesSums;
  static int64_t getParts(Config config) { return config.getSplitK(); }
  static int64_t getStageBlocks(Config) { return 1; }
  static constexpr auto describe = describePromotion;
  static constexpr auto getForm = getMatmulForm;
  static constexpr auto build = buildMatmul;

  /// The cheapest of all, unless none can multiply the operands.
  static FailureOr<KernelConfigAttrInterface>
  select(const MatmulSpec &spec, GPUTargetAttr, std::string &reason,
         MatmulSelect selectCheapest) {
    if (failed(checkOperands(spec, reason)))
      return failure();
    return selectCheapest();
  }
};
} // namespace

std::unique_ptr<KernelGenerator> sm100::createMatmulGenerator() {
  return std::make_unique<MatmulGenerator<BlackwellMatmuls>>();
}
