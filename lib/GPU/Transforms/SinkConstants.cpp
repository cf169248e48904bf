//===- SinkConstants.cpp - Kernels with constants of their own ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SINKCONSTANTSPASS
#include "fp8/GPU/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {
struct SinkConstantsPass : fp8::impl::SinkConstantsPassBase<SinkConstantsPass> {
  using Base::Base;
  void runOnOperation() override {
    getOperation()->walk([](gpu::LaunchOp launch) { sink(launch); });
  }
  static void sink(gpu::LaunchOp launch);
};
} // namespace

void SinkConstantsPass::sink(gpu::LaunchOp launch) {
  Region &body = launch.getBody();
  SmallVector<OpOperand *> uses;
  body.walk([&](Operation *op) {
    for (OpOperand &use : op->getOpOperands()) {
      Operation *source = use.get().getDefiningOp();
      if (source && source->hasTrait<OpTrait::ConstantLike>() &&
          !body.isAncestor(source->getParentRegion()))
        uses.push_back(&use);
    }
  });
  auto b = OpBuilder::atBlockBegin(&body.front());
  IRMapping copies;
  for (OpOperand *use : uses) {
    if (!copies.contains(use->get()))
      b.clone(*use->get().getDefiningOp(), copies);
    use->set(copies.lookup(use->get()));
  }
}
