//===- SM89.cpp - Ada GPUs ------------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM89.h"
#include "../AllKernels.h"
#include "MatmulGenerator.h"
#include "SM89Dialect.h"
#include "fp8/Kernels/Machine.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr StringLiteral kChip = "sm_89";

namespace {
class SM89 : public Architecture {
public:
  SM89() : Architecture(kChip) {
    addGenerator(MatmulSpec::kKind, sm89::createMatmulGenerator());
    addPortableGenerators(*this);
  }

  GPUTargetAttr getTarget(MLIRContext *context) const override {
    return getUsualTarget(kChip, context);
  }

  bool isPortable() const override { return true; }

  void registerDialects(DialectRegistry &registry) const override {
    registerMachines(registry);
    registry.insert<sm89::SM89Dialect>();
  }
};
} // namespace

void fp8::registerSM89() { registerArchitecture(std::make_unique<SM89>()); }
