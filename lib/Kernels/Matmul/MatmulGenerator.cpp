//===- MatmulGenerator.cpp - Matmul kernels of any chip -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulGenerator.h"
#include "../Blocks/OperandTile.h"
#include "MatmulEpilogue.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

LogicalResult fp8::checkEpilogues(const MatmulSpec &spec, std::string &reason) {
  return success(
      succeeded(EpilogueRegion::check(getEpilogueShape(spec), reason)) &&
      (!spec.isDual() ||
       succeeded(EpilogueRegion::check(getFirstShape(spec), reason))));
}

LogicalResult fp8::checkParts(const MatmulSpec &spec, int64_t parts,
                              std::string &reason) {
  if (!spec.invariant || parts == 1)
    return success();
  reason = llvm::formatv("expected one part of K in an invariant matmul, whose "
                         "rows are added up alike, but got {0}",
                         parts);
  return failure();
}

std::string MatmulGeneratorBase::describeOneOf(const MatmulSpec &spec,
                                               KernelConfigAttrInterface config,
                                               GPUTargetAttr target) const {
  if (!spec.invariant)
    return "";
  std::string unused;
  MatmulSpec free = spec;
  free.invariant = false;
  FailureOr<KernelConfigAttrInterface> other = select(free, target, unused);
  if (failed(other) || succeeded(checkFit(spec, *other, target, unused)))
    return "";
  MatmulSpec known = free.withUsualExtents();
  double ratio =
      getCost(known, config, target) / getCost(known, *other, target);
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("K is added up in one part, expected to take {0:F2} of "
                       "the time of ",
                       ratio)
      << *other;
  return text;
}

std::string MatmulGeneratorBase::getLabel(const KernelSpec &spec) const {
  const auto &matmul = cast<MatmulSpec>(spec);
  std::string label = matmul.getTypesName() + (matmul.batched ? "_batch" : "");
  if (matmul.isGrouped()) {
    label += matmul.isMasked() ? "_masked" : "_grouped";
    label += matmul.getGrouping() == Grouping::K ? "_k"
             : matmul.hasUndefPadding()          ? "_undef_padding"
                                                 : "";
  }
  if (matmul.isDual())
    label += "_dual";
  if (matmul.areSiblings())
    label += "_siblings" + std::to_string(matmul.getNumResults());
  return label;
}

std::optional<TensorCoreAccumulation>
MatmulGeneratorBase::getAccumulationOf(const MatmulSpec &spec, int64_t parts,
                                       int64_t stageBlocks, bool promotes,
                                       TensorCoreInstruction instruction) {
  std::optional<int64_t> typeA =
      TensorCoreAccumulation::getType(spec.a.elementType);
  std::optional<int64_t> typeB =
      TensorCoreAccumulation::getType(spec.b.elementType);
  if (!typeA || !typeB)
    return std::nullopt;
  int64_t blockK = spec.a.getElementsOf(kRowBytes);
  // Without parts nobody sees where a stage begins.
  if (parts == 1)
    stageBlocks = 1;
  TensorCoreAccumulation sums{*typeA, *typeB,   stageBlocks * blockK,
                              parts,  promotes, instruction};
  if (!sums.multipliesFactors() && spec.isMicroscaled())
    sums.sumK = spec.a.getFactorK();
  return sums;
}
