//===- LowerExtrema.cpp - The larger and the smaller of two floats --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWEREXTREMAPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {
template <typename OpTy, typename IntrinsicTy>
struct LowerExtremum : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!LLVM::isCompatibleType(op.getType()))
      return rewriter.notifyMatchFailure(op, "expected a type of LLVM's");
    rewriter.replaceOpWithNewOp<IntrinsicTy>(op, op.getLhs(), op.getRhs());
    return success();
  }
};

struct LowerExtremaPass : fp8::impl::LowerExtremaPassBase<LowerExtremaPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerExtremum<arith::MaximumFOp, LLVM::MaximumOp>,
                 LowerExtremum<arith::MinimumFOp, LLVM::MinimumOp>>(
        &getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
