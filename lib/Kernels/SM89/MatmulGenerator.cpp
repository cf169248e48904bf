//===- MatmulGenerator.cpp - Matmul kernels for Ada -----------------------===//
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
using namespace mlir::fp8::sm89;

namespace {
/// What Ada's matmuls have of their own. Each element of the result is summed
/// by instructions of one warp, along all of its part of K: beside parts of K
/// nothing of a config changes bits.
struct AdaMatmuls {
  using Config = GemmConfigAttr;
  using Layout = MatmulLayout;
  static constexpr TensorCoreInstruction kInstruction =
      TensorCoreInstruction::MMA;
  static constexpr auto getCandidates = getMatmulCandidates;
  static constexpr auto getCost = getMatmulCost;
  static constexpr auto promotes = promotesSums;
  static constexpr auto build = buildMatmul;

  static std::string describe(const MatmulSpec &, Config, GPUTargetAttr) {
    return "";
  }

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

std::unique_ptr<KernelGenerator> sm89::createMatmulGenerator() {
  return std::make_unique<MatmulGenerator<AdaMatmuls>>();
}
