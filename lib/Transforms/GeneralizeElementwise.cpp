//===- GeneralizeElementwise.cpp - Elementwise operations to linalg.generic -===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_GENERALIZEELEMENTWISEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {
struct GeneralizeElementwise
    : fp8::impl::GeneralizeElementwisePassBase<GeneralizeElementwise> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.getNumLoops() == op.getNumParallelLoops() &&
          !isa<linalg::GenericOp, linalg::FillOp, linalg::TransposeOp,
               linalg::PackOp, linalg::UnPackOp>(op.getOperation()))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops) {
      rewriter.setInsertionPoint(op);
      // What upstream cannot generalise keeps its name and its own lowering.
      (void)linalg::generalizeNamedOp(rewriter, op);
    }
  }
};
} // namespace
