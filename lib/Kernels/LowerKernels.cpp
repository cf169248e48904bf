//===- LowerKernels.cpp - Kernels to the LLVM dialect ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERKERNELMATHPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

static Value callIntrinsic(PatternRewriter &rewriter, Location loc,
                           StringRef name, ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(rewriter, loc, rewriter.getF32Type(),
                                       rewriter.getStringAttr(name), arguments)
      .getResult(0);
}

namespace {
/// f32 arithmetic for the approximations below.
class Approximation {
public:
  Approximation(PatternRewriter &rewriter, Location loc)
      : b(loc, rewriter), rewriter(rewriter) {}

  Value constant(float value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  }
  Value mul(Value lhs, Value rhs) { return arith::MulFOp::create(b, lhs, rhs); }
  Value fma(Value lhs, Value rhs, Value sum) {
    return math::FmaOp::create(b, lhs, rhs, sum);
  }
  /// ((c0 x + c1) x + ...) + cn
  Value polynomial(Value x, ArrayRef<float> coefficients) {
    Value value = constant(coefficients.front());
    for (float coefficient : coefficients.drop_front())
      value = fma(value, x, constant(coefficient));
    return value;
  }
  /// 2^(x log2 e), by one instruction: ex2.approx, 2 ulp off at most.
  Value exp(Value x) {
    return callIntrinsic(rewriter, b.getLoc(), "llvm.nvvm.ex2.approx.f32",
                         mul(x, constant(1.44269504088896340736f)));
  }
  /// 2 ulp off at most; an IEEE division is a call on the GPU.
  Value divide(Value lhs, Value rhs) {
    return callIntrinsic(rewriter, b.getLoc(), "llvm.nvvm.div.full",
                         {lhs, rhs});
  }
  Value abs(Value x) { return math::AbsFOp::create(b, x); }
  /// `small` up to |x| = `limit`, beyond it `large` with the sign of x.
  Value join(Value x, float limit, Value small, Value large) {
    Value isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, abs(x),
                                          constant(limit));
    return arith::SelectOp::create(
        b, isLarge, math::CopySignOp::create(b, large, x), small);
  }

private:
  ImplicitLocOpBuilder b;
  PatternRewriter &rewriter;
};

struct LowerExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "expected f32");
    rewriter.replaceOp(
        op, Approximation(rewriter, op.getLoc()).exp(op.getOperand()));
    return success();
  }
};

struct LowerDivision : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "expected f32");
    rewriter.replaceOp(
        op,
        Approximation(rewriter, op.getLoc()).divide(op.getLhs(), op.getRhs()));
    return success();
  }
};

/// Two minimax polynomials, around 0 for erf itself and further out for the
/// logarithm of 1 - erf: an error of 1e-7.
struct LowerErf : OpRewritePattern<math::ErfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ErfOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "expected f32");
    Approximation b(rewriter, op.getLoc());
    Value x = op.getOperand(), t = b.abs(x), s = b.mul(x, x);
    Value small = b.fma(
        b.polynomial(s, {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f,
                         1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f}),
        x, x);
    Value log = b.polynomial(
        t, {-1.72853470e-5f, 3.83197126e-4f, -3.88396438e-3f, 2.42546219e-2f,
            -1.06777877e-1f, -6.34846687e-1f, -1.28717512e-1f});
    log = b.fma(log, t, b.mul(t, b.constant(-1.0f)));
    Value large = b.fma(b.exp(log), b.constant(-1.0f), b.constant(1.0f));
    rewriter.replaceOp(op, b.join(x, 0.927734375f, small, large));
    return success();
  }
};

/// 1 - 2 / (exp(2 x) + 1), around 0 a polynomial: an error of 2 ulp.
struct LowerTanh : OpRewritePattern<math::TanhOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::TanhOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "expected f32");
    Approximation b(rewriter, op.getLoc());
    Value x = op.getOperand(), s = b.mul(x, x), one = b.constant(1.0f);
    Value series = b.polynomial(s, {1.57394409e-2f, -5.23025580e-2f,
                                    1.33152470e-1f, -3.33327681e-1f, 0.0f});
    Value small = b.fma(series, x, x);
    Value power = b.exp(b.mul(b.abs(x), b.constant(2.0f)));
    Value quotient = b.divide(b.constant(-2.0f), b.fma(power, one, one));
    Value large = b.fma(quotient, one, one);
    rewriter.replaceOp(op, b.join(x, 0.55f, small, large));
    return success();
  }
};

struct LowerKernelMathPass
    : fp8::impl::LowerKernelMathPassBase<LowerKernelMathPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerDivision, LowerErf, LowerExp, LowerTanh>(&getContext(),
                                                               /*benefit=*/2);
    MathPolynomialApproximationOptions options;
    populateMathPolynomialApproximationPatterns(patterns, options);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void fp8::buildLowerKernelsPipeline(OpPassManager &pm) {
  pm.addPass(createLowerKernelMathPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void fp8::registerKernelPipelines() {
  PassPipelineRegistration<>(
      "fp8-lower-kernels",
      "Take the kernels of gpu.modules to the LLVM dialect",
      [](OpPassManager &pm) {
        buildLowerKernelsPipeline(pm.nest<gpu::GPUModuleOp>());
      });
}
