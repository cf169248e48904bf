//===- MatmulGenerator.h - Matmul kernels of any chip -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULGENERATOR_H
#define FP8_LIB_KERNELS_MATMUL_MATMULGENERATOR_H

#include "MatmulFunction.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"

namespace mlir::fp8 {

/// Fails, with the reason, if a kernel could not compute the epilogues: before
/// any work goes into it, for its first element would tell.
LogicalResult checkEpilogues(const MatmulSpec &spec, std::string &reason);

/// The config as one of a chip's: others may come from a file.
template <typename Config>
FailureOr<Config> getConfigOf(KernelConfigAttrInterface config,
                              std::string &reason) {
  if (auto own = dyn_cast<Config>(config))
    return own;
  llvm::raw_string_ostream(reason)
      << "expected a #" << Config::name << ", but got " << config;
  return failure();
}

/// Fails, with the reason, if the sum of a row would depend on how many parts K
/// has, where it may not.
LogicalResult checkParts(const MatmulSpec &spec, int64_t parts,
                         std::string &reason);

/// Names matmuls and says how a kernel adds up products, for all chips.
class MatmulGeneratorBase : public KernelGenerator {
public:
  std::string getLabel(const KernelSpec &spec) const override;

protected:
  /// What an invariant matmul pays for `config`; empty for nothing.
  std::string describeOneOf(const MatmulSpec &spec,
                            KernelConfigAttrInterface config,
                            GPUTargetAttr target) const;
  /// How a kernel adds up products, by blocks of K; nothing of types that are
  /// not multiplied.
  static std::optional<TensorCoreAccumulation>
  getAccumulationOf(const MatmulSpec &spec, int64_t parts, int64_t stageBlocks,
                    bool promotes, TensorCoreInstruction instruction);
};

/// Selects the cheapest of a chip's candidates.
using MatmulSelect = llvm::function_ref<FailureOr<KernelConfigAttrInterface>()>;

/// Selects and builds a chip's matmul kernels. `Chip` has, as types and static
/// functions, what differs:
///
/// - `Config`, `Layout`: its config attribute, which has a `split_k`, and where
///   a kernel keeps what, with `get(spec, config, target, reason)`;
/// - `kInstruction`, `promotes(spec)`, `getParts(config)`, those of K, and
///   `getStageBlocks(config)`, K blocks with multiples of which parts begin:
///   how its kernels accumulate. Beside these nothing of a config may change
///   bits;
/// - `getCandidates`, `getCost`, `select`, `describe`: its heuristics;
/// - `getForm`, `build`: what its kernel's function is like, and its body.
template <typename Chip>
class MatmulGenerator : public MatmulGeneratorBase {
  using Config = typename Chip::Config;

public:
  SmallVector<KernelConfigAttrInterface>
  getCandidates(const KernelSpec &spec, GPUTargetAttr target,
                bool exhaustive) const override {
    return llvm::map_to_vector(
        Chip::getCandidates(cast<MatmulSpec>(spec), target, exhaustive),
        [](Config config) -> KernelConfigAttrInterface { return config; });
  }

  LogicalResult checkFit(const KernelSpec &spec,
                         KernelConfigAttrInterface config, GPUTargetAttr target,
                         std::string &reason) const override {
    FailureOr<Config> own = getConfigOf<Config>(config, reason);
    const auto &matmul = cast<MatmulSpec>(spec);
    return success(
        succeeded(own) &&
        succeeded(checkParts(matmul, Chip::getParts(*own), reason)) &&
        succeeded(Chip::Layout::get(matmul, *own, target, reason)) &&
        succeeded(checkEpilogues(matmul, reason)));
  }

  double getCost(const KernelSpec &spec, KernelConfigAttrInterface config,
                 GPUTargetAttr target) const override {
    return Chip::getCost(cast<MatmulSpec>(spec), cast<Config>(config), target);
  }

  FailureOr<KernelConfigAttrInterface>
  select(const KernelSpec &spec, GPUTargetAttr target,
         std::string &reason) const override {
    const auto &matmul = cast<MatmulSpec>(spec);
    if (failed(checkEpilogues(matmul, reason)))
      return failure();
    auto selectCheapest = [&] {
      return KernelGenerator::select(spec, target, reason);
    };
    return Chip::select(matmul, target, reason, selectCheapest);
  }

  std::optional<TensorCoreAccumulation>
  getSums(const KernelSpec &spec,
          KernelConfigAttrInterface config) const override {
    auto own = dyn_cast<Config>(config);
    if (!own)
      return std::nullopt;
    const auto &matmul = cast<MatmulSpec>(spec);
    return getAccumulationOf(matmul, Chip::getParts(own),
                             Chip::getStageBlocks(own), Chip::promotes(matmul),
                             Chip::kInstruction);
  }

  std::string getRemark(const KernelSpec &spec,
                        KernelConfigAttrInterface config,
                        GPUTargetAttr target) const override {
    return Chip::describe(cast<MatmulSpec>(spec), cast<Config>(config), target);
  }

  std::string describeInvariance(const KernelSpec &spec,
                                 KernelConfigAttrInterface config,
                                 GPUTargetAttr target) const override {
    return describeOneOf(cast<MatmulSpec>(spec), config, target);
  }

  FailureOr<LLVM::LLVMFuncOp> build(OpBuilder &builder, Location loc,
                                    const KernelSpec &spec,
                                    KernelConfigAttrInterface config,
                                    GPUTargetAttr target, StringRef name,
                                    std::string &reason) const override {
    if (failed(checkFit(spec, config, target, reason)))
      return failure();
    const auto &matmul = cast<MatmulSpec>(spec);
    auto own = cast<Config>(config);
    auto layout = *Chip::Layout::get(matmul, own, target, reason);
    MatmulFunction kernel(builder, loc, matmul, Chip::getForm(own, layout),
                          name);
    Chip::build(kernel, matmul, own, layout, target);
    return kernel.function;
  }
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULGENERATOR_H
