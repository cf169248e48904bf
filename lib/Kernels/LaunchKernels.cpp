//===- LaunchKernels.cpp - Operations with a kernel to launches -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/IR/FP8GPUOps.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Passes.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LAUNCHKERNELSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static LogicalResult launch(KernelOpInterface op,
                            SymbolTableCollection &symbols) {
  auto symbol = op->getAttrOfType<SymbolRefAttr>(kKernelAttrName);
  Operation *kernel = symbols.lookupNearestSymbolFrom(op, symbol);
  auto description = kernel ? kernel->getAttrOfType<LaunchAttr>(kLaunchAttrName)
                            : LaunchAttr();
  if (!description)
    return op->emitOpError("expected a kernel with the attribute '")
           << kLaunchAttrName << "', but got " << symbol;
  OpBuilder builder(op);
  KernelOperands operands = op.getKernelOperands(builder);
  auto launched = LaunchOp::create(
      builder, op.getLoc(), TypeRange(ValueRange(operands.outs)), symbol,
      description, operands.ins, operands.captures, operands.outs);
  op->replaceAllUsesWith(op.buildResults(builder, launched.getResults()));
  op.erase();
  return success();
}

namespace {
struct LaunchKernelsPass : fp8::impl::LaunchKernelsPassBase<LaunchKernelsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override {
    SmallVector<KernelOpInterface> ops;
    getOperation().walk([&](KernelOpInterface op) {
      if (op->hasAttr(kKernelAttrName))
        ops.push_back(op);
    });
    SymbolTableCollection symbols;
    for (KernelOpInterface op : ops)
      if (failed(launch(op, symbols)))
        return signalPassFailure();
  }
};
} // namespace
