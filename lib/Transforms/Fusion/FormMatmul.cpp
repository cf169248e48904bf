//===- FormMatmul.cpp - Contractions of dequantizes to fp8.matmul ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "fp8/Support/RewriteLog.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-form-matmul"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FORMMATMULPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

struct FormMatmulPattern : OpRewritePattern<linalg::ContractOp> {
  FormMatmulPattern(MLIRContext *context, llvm::Statistic &numMatmuls)
      : OpRewritePattern(context), numMatmuls(numMatmuls) {}

  LogicalResult matchAndRewrite(linalg::ContractOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || !isCanonical(op))
      return rewriter.notifyMatchFailure(op, "not a canonical contraction");
    auto a = op.getDpsInputOperand(0)->get().getDefiningOp<DequantizeOp>();
    auto b = op.getDpsInputOperand(1)->get().getDefiningOp<DequantizeOp>();
    if (!a || !b)
      return rewriter.notifyMatchFailure(op, "operands are not dequantized");
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (!type.getElementType().isF32() ||
        !a.getResult().getType().getElementType().isF32() ||
        !b.getResult().getType().getElementType().isF32())
      return rewriter.notifyMatchFailure(op, "does not accumulate in f32");

    auto attribute = op->getAttrOfType<AccumulateAttr>(kAccumulateAttrName);
    Accumulate accumulate =
        attribute ? attribute.getValue() : Accumulate::Promote;
    // What the user dequantized need not fit together.
    std::string mismatch = MatmulOp::describeMismatch(
        a.getSource().getType(), b.getSource().getType(), accumulate);
    if (!mismatch.empty())
      return rewriter.notifyMatchFailure(op, mismatch);
    auto matmul = MatmulOp::create(
        rewriter, op.getLoc(), type, a.getSource(), b.getSource(),
        /*epilogue_operands=*/ValueRange(), accumulate);
    for (StringRef name :
         {kNameAttrName, kRoleAttrName, kRecipeAttrName, kOperandsAttrName})
      if (Attribute value = op->getAttr(name))
        matmul->setAttr(name, value);
    LDBG() << "formed: " << matmul;
    ++numMatmuls;

    Value init = op.getDpsInitOperand(0)->get();
    if (isKnownZero(init)) {
      rewriter.replaceOp(op, matmul);
      return success();
    }
    rewriter.replaceOp(
        op, addElements(rewriter, op.getLoc(), matmul.getResult(), init));
    return success();
  }

  llvm::Statistic &numMatmuls;
};

struct FormMatmulPass : fp8::impl::FormMatmulPassBase<FormMatmulPass> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FormMatmulPattern>(&getContext(), numMatmuls);
    RewriteLog log(DEBUG_TYPE);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                     GreedyRewriteConfig().setListener(&log))))
      signalPassFailure();
  }
};

} // namespace
