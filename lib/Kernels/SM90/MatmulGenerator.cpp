//===- MatmulGenerator.cpp - Matmul kernels for Hopper --------------------===//
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
    if (failed(checkEpilogues(matmul, reason)))
      return failure();
    FailureOr<GemmConfigAttr> config =
        selectMatmulConfig(matmul, target, reason);
    if (failed(config))
      return failure();
    return KernelConfigAttrInterface(*config);
  }

  /// Tiles, stages, clusters and schedules change no bits: each element of the
  /// result is summed by one warpgroup, along K.
  std::optional<TensorCoreAccumulation>
  getSums(const KernelSpec &spec,
          KernelConfigAttrInterface config) const override {
    auto gemm = dyn_cast<GemmConfigAttr>(config);
    if (!gemm)
      return std::nullopt;
    const auto &matmul = cast<MatmulSpec>(spec);
    return getAccumulationOf(matmul, gemm.getSplitK(),
                             matmul.accumulate == Accumulate::Promote,
                             TensorCoreInstruction::WGMMA);
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
  static FailureOr<GemmConfigAttr> getConfig(KernelConfigAttrInterface config,
                                             std::string &reason) {
    if (auto gemm = dyn_cast<GemmConfigAttr>(config))
      return gemm;
    llvm::raw_string_ostream(reason)
        << "expected a #fp8_sm90.gemm, but got " << config;
    return failure();
  }
};
} // namespace

std::unique_ptr<KernelGenerator> fp8::createMatmulGeneratorSM90() {
  return std::make_unique<MatmulGenerator>();
}
