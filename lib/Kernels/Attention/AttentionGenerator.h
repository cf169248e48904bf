//===- AttentionGenerator.h - Attention kernels of any chip -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONGENERATOR_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONGENERATOR_H

#include "../Matmul/MatmulGenerator.h"
#include "AttentionKernel.h"

namespace mlir::fp8 {

/// Selects and builds a chip's kernels of attention, or of its gradients.
/// `Chip` has, as types and static functions, what differs:
///
/// - `Spec`: what they compute, with `getLabel`;
/// - `Config`, `Memory`: its config attribute, and where a kernel keeps what,
///   with `get(spec, config, target, reason)`;
/// - `getTiles`: configs, of which some may not fit; `getCost`;
/// - `getLeast`: the one that needs the least, which says why none fits;
/// - `Signature`, `describe`: what its kernels take, and their launch;
/// - `build`: its kernel, in a function of these.
template <typename Chip>
class AttentionGenerator : public KernelGenerator {
  using Config = typename Chip::Config;
  using Spec = typename Chip::Spec;
  using Memory = typename Chip::Memory;

public:
  SmallVector<KernelConfigAttrInterface> getCandidates(const KernelSpec &spec,
                                                       GPUTargetAttr target,
                                                       bool) const override {
    const auto &attention = cast<Spec>(spec);
    SmallVector<KernelConfigAttrInterface> candidates;
    std::string reason;
    for (Config config : Chip::getTiles(attention, target.getContext()))
      if (succeeded(Chip::Memory::get(attention, config, target, reason)))
        candidates.push_back(config);
    llvm::stable_sort(candidates, [&](KernelConfigAttrInterface lhs,
                                      KernelConfigAttrInterface rhs) {
      return getCost(spec, lhs, target) < getCost(spec, rhs, target);
    });
    return candidates;
  }

  LogicalResult checkFit(const KernelSpec &spec,
                         KernelConfigAttrInterface config, GPUTargetAttr target,
                         std::string &reason) const override {
    FailureOr<Config> own = getConfigOf<Config>(config, reason);
    return success(
        succeeded(own) &&
        succeeded(Chip::Memory::get(cast<Spec>(spec), *own, target, reason)));
  }

  double getCost(const KernelSpec &spec, KernelConfigAttrInterface config,
                 GPUTargetAttr target) const override {
    return Chip::getCost(cast<Spec>(spec), cast<Config>(config), target);
  }

  FailureOr<KernelConfigAttrInterface>
  select(const KernelSpec &spec, GPUTargetAttr target,
         std::string &reason) const override {
    SmallVector<KernelConfigAttrInterface> candidates =
        getCandidates(spec, target, /*exhaustive=*/false);
    if (!candidates.empty())
      return candidates.front();
    Config least = Chip::getLeast(cast<Spec>(spec), target.getContext());
    return checkFit(spec, least, target, reason);
  }

  std::string getLabel(const KernelSpec &spec) const override {
    return cast<Spec>(spec).getLabel();
  }

  FailureOr<LLVM::LLVMFuncOp> build(OpBuilder &builder, Location loc,
                                    const KernelSpec &spec,
                                    KernelConfigAttrInterface config,
                                    GPUTargetAttr target, StringRef name,
                                    std::string &reason) const override {
    if (failed(checkFit(spec, config, target, reason)))
      return failure();
    const auto &attention = cast<Spec>(spec);
    auto own = cast<Config>(config);
    Memory memory = *Memory::get(attention, own, target, reason);
    OpBuilder::InsertionGuard guard(builder);
    typename Chip::Signature made(builder.getContext(), attention);
    KernelSignature::Launch launch;
    Chip::describe(made, attention, own, memory, launch);
    LLVM::LLVMFuncOp function = made.signature.create(
        builder, loc, name, launch, KernelMath::Approximate);
    builder.setInsertionPointToStart(function.addEntryBlock(builder));
    AttentionKernel<Memory> kernel{function, KernelBuilder(loc, builder),
                                   memory, made.signature.getParams(function)};
    Chip::build(kernel, attention, own, target);
    return function;
  }
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONGENERATOR_H
