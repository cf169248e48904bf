//===- SeparateReads.cpp - Many reads of one tensor -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SEPARATEREADSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {
struct SeparateReadsPass : fp8::impl::SeparateReadsPassBase<SeparateReadsPass> {
  using Base::Base;
  void runOnOperation() override;
  void separate(Value tensor);
};
} // namespace

/// Whether the tensor will be memory of its own, in row-major order.
static bool hasOwnMemory(OpResult result) {
  auto op = dyn_cast<DestinationStyleOpInterface>(result.getOwner());
  if (!op || !op.hasPureTensorSemantics())
    return false;
  Value init = op.getTiedOpOperand(result)->get();
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getOutputs()[0];
  return init.getDefiningOp<tensor::EmptyOp>() != nullptr;
}

/// Whether the use looks at the tensor and neither writes to it nor gives its
/// memory another name, through which others might.
static bool isRead(OpOperand &use) {
  auto op = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
  return op && op.hasPureTensorSemantics() && op.isDpsInput(&use) &&
         !isa<tensor::TensorDialect>(op->getDialect()) &&
         (isa<linalg::LinalgOp>(use.getOwner()) || op->getNumRegions() == 0);
}

void SeparateReadsPass::separate(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !tensor.hasNUsesOrMore(maxReads + 1) ||
      !llvm::all_of(tensor.getUses(), isRead))
    return;
  OpBuilder b(&getContext());
  b.setInsertionPointAfterValue(tensor);
  SmallVector<OpOperand *> uses(llvm::make_pointer_range(tensor.getUses()));
  Value memory = bufferization::ToBufferOp::create(
      b, tensor.getLoc(),
      MemRefType::get(type.getShape(), type.getElementType()), tensor,
      /*read_only=*/true);
  for (OpOperand *use : uses) {
    b.setInsertionPoint(use->getOwner());
    use->set(bufferization::ToTensorOp::create(
        b, use->getOwner()->getLoc(), type, memory, /*restrict=*/true));
    ++numSeparated;
  }
}

void SeparateReadsPass::runOnOperation() {
  func::FuncOp function = getOperation();
  if (function.isExternal())
    return;
  SmallVector<Value> tensors(function.getArguments());
  function.walk([&](Operation *op) {
    for (OpResult result : op->getResults())
      if (hasOwnMemory(result))
        tensors.push_back(result);
  });
  for (Value tensor : tensors)
    separate(tensor);
}
