//===- SM90.cpp - Hopper GPUs ---------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM90.h"
#include "../AllKernels.h"
#include "../Attention/AttentionBackwardSpec.h"
#include "../Attention/AttentionSpec.h"
#include "AttentionBackwardGenerator.h"
#include "AttentionGenerator.h"
#include "MatmulGenerator.h"
#include "SM90Dialect.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/Machine.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr StringLiteral kChip = "sm_90a";

namespace {
class SM90 : public Architecture {
public:
  SM90() : Architecture(kChip) {
    addGenerator(AttentionSpec::kKind, sm90::createAttentionGenerator());
    addGenerator(AttentionBackwardSpec::kKind,
                 sm90::createAttentionBackwardGenerator());
    addGenerator(MatmulSpec::kKind, sm90::createMatmulGenerator());
    addPortableGenerators(*this);
  }

  GPUTargetAttr getTarget(MLIRContext *context) const override {
    return getUsualTarget(kChip, context);
  }

  void registerDialects(DialectRegistry &registry) const override {
    registerMachines(registry);
    registry.insert<sm90::SM90Dialect>();
  }
};
} // namespace

void fp8::registerSM90() { registerArchitecture(std::make_unique<SM90>()); }
