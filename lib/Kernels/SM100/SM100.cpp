//===- SM100.cpp - Blackwell GPUs -----------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM100.h"
#include "../AllKernels.h"
#include "../Attention/AttentionSpec.h"
#include "AttentionBackwardGenerator.h"
#include "AttentionGenerator.h"
#include "MatmulGenerator.h"
#include "SM100Dialect.h"
#include "fp8/Kernels/Machine.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr StringLiteral kChip = "sm_100a";

namespace {
class SM100 : public Architecture {
public:
  SM100() : Architecture(kChip) {
    addGenerator(AttentionSpec::kKind, sm100::createAttentionGenerator());
    addGenerator(AttentionBackwardSpec::kKind,
                 sm100::createAttentionBackwardGenerator());
    addGenerator(MatmulSpec::kKind, sm100::createMatmulGenerator());
    addPortableGenerators(*this);
  }

  GPUTargetAttr getTarget(MLIRContext *context) const override {
    return getUsualTarget(kChip, context);
  }

  void registerDialects(DialectRegistry &registry) const override {
    registerMachines(registry);
    registry.insert<sm100::SM100Dialect>();
  }
};
} // namespace

void fp8::registerSM100() { registerArchitecture(std::make_unique<SM100>()); }
