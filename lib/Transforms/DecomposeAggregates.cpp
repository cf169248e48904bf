//===- DecomposeAggregates.cpp - Aggregates to structured operations ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DECOMPOSEAGGREGATESPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

/// Replaces `op` by operations that upstream bufferises, if it is an aggregate.
static LogicalResult decompose(RewriterBase &rewriter, Operation *op) {
  rewriter.setInsertionPoint(op);
  if (auto pack = dyn_cast<linalg::PackOp>(op))
    return linalg::lowerPack(rewriter, pack);
  if (auto unpack = dyn_cast<linalg::UnPackOp>(op))
    return linalg::lowerUnPack(rewriter, unpack);
  auto aggregate = cast<linalg::AggregatedOpInterface>(op);
  FailureOr<SmallVector<Value>> parts = aggregate.decomposeOperation(rewriter);
  if (failed(parts))
    return failure();
  rewriter.replaceOp(op, *parts);
  return success();
}

namespace {
struct DecomposeAggregatesPass
    : fp8::impl::DecomposeAggregatesPassBase<DecomposeAggregatesPass> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<linalg::AggregatedOpInterface, linalg::PackOp, linalg::UnPackOp>(
              op))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops) {
      if (failed(decompose(rewriter, op))) {
        op->emitOpError("expected an operation that decomposes into "
                        "structured ones, but upstream could not");
        return signalPassFailure();
      }
    }
  }
};
} // namespace
