//===- MmaArchitecture.h - GPUs with mma.sync -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_MMAARCHITECTURE_H
#define FP8_LIB_KERNELS_MMA_MMAARCHITECTURE_H

#include "../AllKernels.h"
#include "AttentionBackwardGenerator.h"
#include "AttentionGenerator.h"
#include "MatmulGenerator.h"
#include "fp8/Kernels/Machine.h"
#include "mlir/IR/DialectRegistry.h"

namespace mlir::fp8::mma {

/// The architecture of a chip whose matmuls are warps' own: what tells such
/// chips apart is in their machines.
class MmaArchitecture : public Architecture {
public:
  MmaArchitecture(StringRef chip, ProductsOfCodes products)
      : Architecture(chip) {
    addGenerator(MatmulSpec::kKind, createMatmulGenerator(products));
    addGenerator(AttentionSpec::kKind, createAttentionGenerator());
    addGenerator(AttentionBackwardSpec::kKind,
                 createAttentionBackwardGenerator());
    addPortableGenerators(*this);
  }

  GPUTargetAttr getTarget(MLIRContext *context) const override {
    return getUsualTarget(getChip(), context);
  }

  void registerDialects(DialectRegistry &registry) const override {
    registerMachines(registry);
    registry.insert<MmaDialect>();
  }
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_MMAARCHITECTURE_H
