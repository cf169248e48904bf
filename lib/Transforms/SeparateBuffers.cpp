//===- SeparateBuffers.cpp - Memory of their own for results --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SEPARATEBUFFERSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {
struct SeparateBuffersPass
    : fp8::impl::SeparateBuffersPassBase<SeparateBuffersPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<tensor::EmptyOp> ops;
    getOperation()->walk([&](tensor::EmptyOp op) { ops.push_back(op); });
    for (tensor::EmptyOp op : ops)
      separate(op);
  }

  void separate(tensor::EmptyOp op) {
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      // In a loop it would be allocated in every iteration.
      Operation *user = use.getOwner();
      if (user->getBlock() != op->getBlock())
        continue;
      use.set(OpBuilder(user).clone(*op)->getResult(0));
      ++numSeparated;
    }
    if (op.use_empty())
      op.erase();
  }
};
} // namespace
