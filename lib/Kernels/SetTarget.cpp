//===- SetTarget.cpp - Decide which GPU kernels are for -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetLookup.h"
#include "fp8/Kernels/Machine.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/IR/BuiltinOps.h"

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
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  if (!machine.empty() && !module->hasAttr(kTargetAttrName)) {
    FailureOr<GPUTargetAttr> found = lookupMachine(
        machine, chip, &getContext(),
        [&] { return emitError(module.getLoc()); },
        [&] { return emitRemark(module.getLoc()); });
    if (failed(found))
      return signalPassFailure();
    target->attribute = *found;
  }
  if (target->attribute.getChip() != chip) {
    emitError(module.getLoc(), "expected '")
        << kTargetAttrName << "' to be of chip " << chip << ", but got "
        << target->attribute;
    return signalPassFailure();
  }
  module->setAttr(kTargetAttrName, target->attribute);
}
