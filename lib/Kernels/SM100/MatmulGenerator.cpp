//===- MatmulGenerator.cpp - Matmul kernels for Blackwell -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulGenerator.h"
#include "../Matmul/MatmulGeneratorBase.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

namespace {
class MatmulGenerator : public MatmulGeneratorBase {
public:
  SmallVector<KernelConfigAttrInterface>
  getCandidates(const KernelSpec &spec, GPUTargetAttr target,
                bool exhaustive) const override {
    return llvm::map_to_vector(
        getMatmulCandidates(cast<MatmulSpec>(spec), target, exhaustive),
        [](GemmConfigAttr config) -> KernelConfigAttrInterface {
          return config;
        });
  }

  LogicalResult checkFit(const KernelSpec &spec,
                         KernelConfigAttrInterface config, GPUTargetAttr target,
                         std::string &reason) const override {
    FailureOr<GemmConfigAttr> gemm = getConfig(config, reason);
    const auto &matmul = cast<MatmulSpec>(spec);
    return success(
        succeeded(gemm) &&
        succeeded(MatmulLayout::get(matmul, *gemm, target, reason)) &&
        succeeded(checkEpilogues(matmul, reason)));
  }

  double getCost(const KernelSpec &spec, KernelConfigAttrInterface config,
                 GPUTargetAttr target) const override {
    return getMatmulCost(cast<MatmulSpec>(spec), cast<GemmConfigAttr>(config),
                         target);
  }

  FailureOr<KernelConfigAttrInterface>
  select(const KernelSpec &spec, GPUTargetAttr target,
         std::string &reason) const override {
    const auto &matmul = cast<MatmulSpec>(spec);
    if (failed(checkEpilogues(matmul, reason)) ||
        failed(checkOperands(matmul, reason)))
      return failure();
    return KernelGenerator::select(spec, target, reason);
  }

  /// Each element of the result is summed in tensor memory, along all of its
  /// part of K, whoever issues the instructions, and in which block its row is.
  /// Tiles, stages, pairs of blocks and swapped operands change no bits.
  /// Promoted are K blocks whose factors the tensor core does not multiply, and
  /// nothing else.
  std::optional<TensorCoreAccumulation>
  getSums(const KernelSpec &spec,
          KernelConfigAttrInterface config) const override {
    auto gemm = dyn_cast<GemmConfigAttr>(config);
    if (!gemm)
      return std::nullopt;
    const auto &matmul = cast<MatmulSpec>(spec);
    return getAccumulationOf(matmul, gemm.getSplitK(), promotesSums(matmul),
                             TensorCoreInstruction::TCGen05);
  }

  std::string getRemark(const KernelSpec &spec,
                        KernelConfigAttrInterface config,
                        GPUTargetAttr target) const override {
    return describePromotion(cast<MatmulSpec>(spec),
                             cast<GemmConfigAttr>(config), target);
  }

  FailureOr<LLVM::LLVMFuncOp> build(OpBuilder &builder, Location loc,
                                    const KernelSpec &spec,
                                    KernelConfigAttrInterface config,
                                    GPUTargetAttr target, StringRef name,
                                    std::string &reason) const override {
    if (failed(checkFit(spec, config, target, reason)))
      return failure();
    return buildMatmul(builder, loc, cast<MatmulSpec>(spec),
                       cast<GemmConfigAttr>(config), target, name, reason);
  }

private:
  /// The config as one of ours: others may come from a file.
  static FailureOr<GemmConfigAttr> getConfig(KernelConfigAttrInterface config,
                                             std::string &reason) {
    if (auto gemm = dyn_cast<GemmConfigAttr>(config))
      return gemm;
    llvm::raw_string_ostream(reason)
        << "expected a #fp8_sm100.gemm, but got " << config;
    return failure();
  }
};
} // namespace

std::unique_ptr<KernelGenerator> sm100::createMatmulGenerator() {
  return std::make_unique<MatmulGenerator>();
}
