//===- SetTarget.cpp - Decide which GPU kernels are for -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SETTARGETPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct SetTargetPass : fp8::impl::SetTargetPassBase<SetTargetPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;
};
} // namespace

void SetTargetPass::runOnOperation() {
  ModuleOp module = getOperation();
  const Architecture *architecture = lookupArchitecture(chip);
  if (!architecture) {
    emitError(module.getLoc(), "expected chip to be one of ")
        << llvm::join(getArchitectureChips(), ", ") << ", but got '" << chip
        << "'";
    return signalPassFailure();
  }
  auto given = module->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  if (!given) {
    module->setAttr(kTargetAttrName, architecture->getTarget(&getContext()));
  } else if (given.getChip() != chip) {
    emitError(module.getLoc(), "expected '")
        << kTargetAttrName << "' to be of chip " << chip << ", but got "
        << given;
    signalPassFailure();
  }
}
