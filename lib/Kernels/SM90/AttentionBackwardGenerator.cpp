//===- AttentionBackwardGenerator.cpp - Gradients of attention ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardGenerator.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
class AttentionBackwardGenerator : public KernelGenerator {
public:
  SmallVector<KernelConfigAttrInterface>
  getCandidates(const KernelSpec &spec, GPUTargetAttr target,
                bool exhaustive) const override;
  LogicalResult checkFit(const KernelSpec &spec,
                         KernelConfigAttrInterface config, GPUTargetAttr target,
                         std::string &reason) const override;
  double getCost(const KernelSpec &spec, KernelConfigAttrInterface config,
                 GPUTargetAttr target) const override;
  FailureOr<KernelConfigAttrInterface>
  select(const KernelSpec &spec, GPUTargetAttr target,
         std::string &reason) const override;
  std::string getLabel(const KernelSpec &spec) const override;
  FailureOr<LLVM::LLVMFuncOp> build(OpBuilder &builder, Location loc,
                                    const KernelSpec &spec,
                                    KernelConfigAttrInterface config,
                                    GPUTargetAttr target, StringRef name,
                                    std::string &reason) const override;
};
} // namespace

static AttentionConfigAttr makeConfig(GPUTargetAttr target, int64_t tileQ,
                                      int64_t stages) {
  return AttentionConfigAttr::get(target.getContext(), tileQ, /*tile_k=*/128,
                                  stages, /*tile_heads=*/1, /*split_tiles=*/0,
                                  /*polynomials=*/0, AttentionTurn::None);
}

SmallVector<KernelConfigAttrInterface>
AttentionBackwardGenerator::getCandidates(const KernelSpec &spec,
                                          GPUTargetAttr target, bool) const {
  SmallVector<KernelConfigAttrInterface> candidates;
  std::string reason;
  for (int64_t tileQ : {128, 64})
    for (int64_t stages : {2, 3}) {
      auto config = makeConfig(target, tileQ, stages);
      if (succeeded(checkFit(spec, config, target, reason)))
        candidates.push_back(config);
    }
  return candidates;
}

LogicalResult AttentionBackwardGenerator::checkFit(
    const KernelSpec &spec, KernelConfigAttrInterface config,
    GPUTargetAttr target, std::string &reason) const {
  if (auto backward = dyn_cast<AttentionConfigAttr>(config))
    return AttentionBackwardMemory::get(cast<AttentionBackwardSpec>(spec),
                                        backward, target, reason);
  llvm::raw_string_ostream(reason)
      << "expected a #fp8_sm90.attention, but got " << config;
  return failure();
}

double AttentionBackwardGenerator::getCost(const KernelSpec &,
                                           KernelConfigAttrInterface config,
                                           GPUTargetAttr) const {
  auto tile = cast<AttentionConfigAttr>(config);
  return double(tile.getStages()) - double(tile.getTileQ()) / 64;
}

FailureOr<KernelConfigAttrInterface>
AttentionBackwardGenerator::select(const KernelSpec &spec, GPUTargetAttr target,
                                   std::string &reason) const {
  SmallVector<KernelConfigAttrInterface> candidates =
      getCandidates(spec, target, /*exhaustive=*/false);
  if (!candidates.empty())
    return candidates.front();
  // Why the smallest does not fit either.
  return checkFit(spec, makeConfig(target, /*tileQ=*/64, /*stages=*/2), target,
                  reason);
}

std::string AttentionBackwardGenerator::getLabel(const KernelSpec &spec) const {
  const auto &backward = cast<AttentionBackwardSpec>(spec);
  std::string label;
  llvm::raw_string_ostream os(label);
  os << (backward.isScaled     ? "f8"
         : backward.q.isBF16() ? "bf16"
                               : "f16")
     << "_d" << backward.headDim;
  if (backward.isCausal())
    os << "_causal";
  else if (backward.left || backward.right)
    os << "_window";
  if (!backward.isDeterministic)
    os << "_any";
  return label;
}

FailureOr<LLVM::LLVMFuncOp> AttentionBackwardGenerator::build(
    OpBuilder &builder, Location loc, const KernelSpec &spec,
    KernelConfigAttrInterface config, GPUTargetAttr target, StringRef name,
    std::string &reason) const {
  if (failed(checkFit(spec, config, target, reason)))
    return failure();
  return buildAttentionBackward(builder, loc, cast<AttentionBackwardSpec>(spec),
                                cast<AttentionConfigAttr>(config), target, name,
                                reason);
}

std::unique_ptr<KernelGenerator> sm90::createAttentionBackwardGenerator() {
  return std::make_unique<AttentionBackwardGenerator>();
}
