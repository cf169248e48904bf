//===- MatmulHeuristics.cpp - Choice of configs of matmuls ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Decisions that follow from others by rule, and the choice; see
// docs/Kernels.md, "Selection".

#include "MatmulConfigs.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// How many configs may be the best.
static constexpr size_t kMaxCandidates = 24;

static bool isFitting(const MatmulSpec &spec, GemmConfigAttr config,
                      GPUTargetAttr target) {
  std::string reason;
  return succeeded(MatmulLayout::get(spec, config, target, reason));
}

/// `config` with other decisions of its schedule.
static GemmConfigAttr withSchedule(GemmConfigAttr config, int64_t group,
                                   int64_t staging, int64_t pending,
                                   bool overlap, GemmEpilogue epilogue) {
  return GemmConfigAttr::get(
      config.getContext(), config.getTileM(), config.getTileN(),
      config.getStages(), config.getConsumers(), config.getSchedule(), group,
      config.getSplitK(), config.getSwapAb(), config.getStore(),
      config.getClusterM(), config.getClusterN(), staging, pending, overlap,
      epilogue, config.getLifters(), config.getLiftWarps(),
      config.getStageBlocks(), config.getClusterK());
}

GemmEpilogue sm90::getMatmulEpilogue(const MatmulSpec &spec, int64_t subtiles,
                                     int64_t cols, bool storesInBulk,
                                     WgmmaModelAttr model) {
  int64_t ofElement = spec.getEpilogueInstructions();
  int64_t bytes =
      spec.getResultCols(cols) * spec.resultType.getIntOrFloatBitWidth() / 8;
  // What is many moves into a loop: code that does not fit the instruction
  // cache issues at half the rate. And with nothing but a barrier between two
  // subtiles ptxas computes the functions of both before it stores the first,
  // and while a warp does so the other warpgroup's products wait.
  bool isMany =
      ofElement * subtiles * cols / 2 > model.getMostUnrolled() ||
      (ofElement >= model.getManyOfElement() && getStoreBytes(bytes) >= bytes);
  bool isLooped = isMany && storesInBulk && subtiles > 1;
  return isLooped ? GemmEpilogue::Looped : GemmEpilogue::Unrolled;
}

/// `config` with each decision that the schedule makes by rule made otherwise,
/// one at a time.
static SmallVector<GemmConfigAttr> getVariants(GemmConfigAttr config) {
  int64_t group = config.getGroup(), staging = config.getStaging(),
          pending = config.getPending();
  bool overlap = config.getOverlap();
  GemmEpilogue epilogue = config.getEpilogue();
  GemmEpilogue otherEpilogue = epilogue == GemmEpilogue::Looped
                                   ? GemmEpilogue::Unrolled
                                   : GemmEpilogue::Looped;
  SmallVector<GemmConfigAttr> variants;
  auto add = [&](int64_t group, int64_t staging, int64_t pending, bool overlap,
                 GemmEpilogue epilogue) {
    variants.push_back(
        withSchedule(config, group, staging, pending, overlap, epilogue));
  };
  for (int64_t other : {1, 4, 8, 16, 32})
    if (other != group)
      add(other, staging, pending, overlap, epilogue);
  if (config.getStore() == GemmStore::TMA) {
    add(group, staging == 1 ? 2 : 1, pending, overlap, epilogue);
    if (config.getSubtiles() > 1)
      add(group, staging, pending, overlap, otherEpilogue);
  }
  if (config.getSplitK() == 1)
    add(group, staging, 1 - pending, overlap, epilogue);
  if (overlap)
    add(group, staging, pending, /*overlap=*/false, epilogue);
  return variants;
}

SmallVector<GemmConfigAttr> sm90::getMatmulCandidates(const MatmulSpec &spec,
                                                      GPUTargetAttr target,
                                                      bool exhaustive) {
  SmallVector<GemmConfigAttr> best =
      MatmulConfigs(spec, target).getBest(kMaxCandidates);
  if (!exhaustive)
    return best;
  SmallVector<GemmConfigAttr> candidates;
  for (GemmConfigAttr config : best) {
    candidates.push_back(config);
    for (GemmConfigAttr variant : getVariants(config))
      if (isFitting(spec, variant, target))
        candidates.push_back(variant);
  }
  return candidates;
}

FailureOr<GemmConfigAttr> sm90::selectMatmulConfig(const MatmulSpec &spec,
                                                   GPUTargetAttr target,
                                                   std::string &reason) {
  // What few rows want is swapped operands, which a pair cannot have.
  auto model = cast<WgmmaModelAttr>(getMachine(target).getMatmul());
  int64_t fewRows = model.getFewRows();
  if (spec.isDual() && !ShapedType::isDynamic(spec.m) && spec.m <= fewRows) {
    llvm::raw_string_ostream(reason) << "expected more than " << fewRows
                                     << " rows of both products of a pair";
    return failure();
  }
  SmallVector<GemmConfigAttr> best = MatmulConfigs(spec, target).getBest(1);
  if (!best.empty())
    return best.front();
  if (succeeded(checkOperands(spec, reason)))
    reason = "no config fits";
  return failure();
}

double sm90::getMatmulCost(const MatmulSpec &spec, GemmConfigAttr config,
                           GPUTargetAttr target) {
  return MatmulConfigs(spec, target).getCost(TileConfig::get(config));
}
