//===- MatmulGenerator.cpp - Matmul kernels by mma.sync -------------------===//
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
using namespace mlir::fp8::mma;

namespace {
/// What matmuls by mma.sync have of their own. Each element of the result is
/// summed by instructions of one warp, along all of its part of K: beside parts
/// of K nothing of a config changes bits.
template <ProductsOfCodes Products>
struct MmaMatmuls {
  using Config = GemmConfigAttr;
  using Layout = MatmulLayout;
  // The wide sums are those of Blackwell's other instruction.
  static constexpr TensorCoreInstruction kInstruction =
      Products == ProductsOfCodes::Wide ? TensorCoreInstruction::TCGen05
                                        : TensorCoreInstruction::MMA;
  static constexpr auto getCandidates = getMatmulCandidates;
  static constexpr auto getCost = getMatmulCost;
  static constexpr auto getForm = getMatmulForm;
  static constexpr auto build = buildMatmul;

  static int64_t getParts(Config config) { return config.getSplitK(); }
  static int64_t getStageBlocks(Config) { return 1; }
  static bool promotes(const MatmulSpec &spec) {
    return promotesSums(spec, Products != ProductsOfCodes::Narrow);
  }

  static std::string describe(const MatmulSpec &, Config, GPUTargetAttr) {
    return "";
  }

  /// The cheapest of all, unless none can multiply the operands.
  static FailureOr<KernelConfigAttrInterface>
  select(const MatmulSpec &spec, GPUTargetAttr target, std::string &reason,
         MatmulSelect selectCheapest) {
    if (failed(checkOperands(spec, target, reason)))
      return failure();
    return selectCheapest();
  }
};

/// Products of codes that become f16, whose sums nobody has measured.
class ExpandedMatmuls
    : public MatmulGenerator<MmaMatmuls<ProductsOfCodes::Expanded>> {
public:
  std::optional<TensorCoreAccumulation>
  getSums(const KernelSpec &spec,
          KernelConfigAttrInterface config) const override {
    if (cast<MatmulSpec>(spec).isScaled())
      return std::nullopt;
    return MatmulGenerator::getSums(spec, config);
  }
};
} // namespace

std::unique_ptr<KernelGenerator>
mma::createMatmulGenerator(ProductsOfCodes products) {
  switch (products) {
  case ProductsOfCodes::Narrow:
    return std::make_unique<
        MatmulGenerator<MmaMatmuls<ProductsOfCodes::Narrow>>>();
  case ProductsOfCodes::Wide:
    return std::make_unique<
        MatmulGenerator<MmaMatmuls<ProductsOfCodes::Wide>>>();
  case ProductsOfCodes::Expanded:
    return std::make_unique<ExpandedMatmuls>();
  }
  llvm_unreachable("no products of codes");
}
