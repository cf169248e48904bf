//===- MatmulGeneratorBase.h - Generators of matmul kernels -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULGENERATORBASE_H
#define FP8_LIB_KERNELS_MATMUL_MATMULGENERATORBASE_H

#include "../Blocks/OperandTile.h"
#include "MatmulEpilogue.h"
#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8 {

/// What generators of matmul kernels have in common, whatever the architecture.
class MatmulGeneratorBase : public KernelGenerator {
public:
  std::string getLabel(const KernelSpec &spec) const override {
    const auto &matmul = cast<MatmulSpec>(spec);
    std::string label =
        matmul.getTypesName() + (matmul.batched ? "_batch" : "");
    if (matmul.isGrouped()) {
      label += matmul.masked ? "_masked" : "_grouped";
      label += matmul.grouping == Grouping::K ? "_k"
               : matmul.hasUndefPadding       ? "_undef_padding"
                                              : "";
    }
    if (matmul.isDual())
      label += "_dual";
    if (matmul.areSiblings())
      label += "_siblings" + std::to_string(matmul.results.size());
    return label;
  }

protected:
  /// How a kernel adds up products, by blocks of K; nothing of types that are
  /// not multiplied.
  static std::optional<TensorCoreAccumulation>
  getAccumulationOf(const MatmulSpec &spec, int64_t splitK, bool promotes,
                    TensorCoreInstruction instruction) {
    std::optional<int64_t> typeA =
        TensorCoreAccumulation::getType(spec.a.elementType);
    std::optional<int64_t> typeB =
        TensorCoreAccumulation::getType(spec.b.elementType);
    if (!typeA || !typeB)
      return std::nullopt;
    return TensorCoreAccumulation{
        *typeA, *typeB,   spec.a.getElementsOf(kRowBytes),
        splitK, promotes, instruction};
  }

  /// Before any work goes into the kernel: its first element would tell.
  static LogicalResult checkEpilogues(const MatmulSpec &spec,
                                      std::string &reason) {
    return success(
        succeeded(EpilogueRegion::check(getEpilogueShape(spec), reason)) &&
        (!spec.isDual() ||
         succeeded(EpilogueRegion::check(getFirstShape(spec), reason))));
  }
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULGENERATORBASE_H
