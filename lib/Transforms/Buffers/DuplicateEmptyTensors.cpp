//===- DuplicateEmptyTensors.cpp - One tensor.empty for each use ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DUPLICATEEMPTYTENSORSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {
struct DuplicateEmptyTensorsPass
    : fp8::impl::DuplicateEmptyTensorsPassBase<DuplicateEmptyTensorsPass> {
  using Base::Base;

  void runOnOperation() override {
    // Memory that is filled goes to one use, so that what it is of does too.
    SmallVector<linalg::FillOp> fills;
    getOperation()->walk([&](linalg::FillOp op) {
      if (op.hasPureTensorSemantics() &&
          op.getOutputs()[0].getDefiningOp<tensor::EmptyOp>())
        fills.push_back(op);
    });
    for (linalg::FillOp op : fills)
      separate(op);
    SmallVector<tensor::EmptyOp> empties;
    getOperation()->walk([&](tensor::EmptyOp op) { empties.push_back(op); });
    for (tensor::EmptyOp op : empties)
      separate(op);
  }

  void separate(Operation *op) {
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      Operation *user = use.getOwner();
      auto destination = dyn_cast<DestinationStyleOpInterface>(user);
      // What is only read is read where it is; in a loop memory would be
      // allocated in every iteration.
      if (user->getBlock() != op->getBlock() ||
          (isa<linalg::FillOp>(op) &&
           !(destination && destination.isDpsInit(&use))))
        continue;
      use.set(OpBuilder(user).clone(*op)->getResult(0));
      ++numSeparated;
    }
    if (op->use_empty())
      op->erase();
  }
};
} // namespace
