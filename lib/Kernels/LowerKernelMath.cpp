//===- LowerKernelMath.cpp - Functions of kernels without a library -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An epilogue shares the issue slots of an SM with the tensor cores, and the
// unit behind ex2 and rcp takes eight cycles for a warp: what counts is the
// number of instructions. Of 1 + erf(x) and 1 + tanh(x), which activations are
// made of, only the absolute error matters, so that one formula serves all x.
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERKERNELMATHPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

static constexpr float kLog2E = 1.44269504088896340736f;

namespace {
/// f32 arithmetic for the approximations below.
class Approximation {
public:
  Approximation(PatternRewriter &rewriter, Location loc) : b(loc, rewriter) {}

  Value constant(float value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  }
  Value add(Value lhs, Value rhs) { return arith::AddFOp::create(b, lhs, rhs); }
  Value mul(Value lhs, Value rhs) { return arith::MulFOp::create(b, lhs, rhs); }
  Value fma(Value lhs, Value rhs, Value sum) {
    return math::FmaOp::create(b, lhs, rhs, sum);
  }
  Value abs(Value x) { return math::AbsFOp::create(b, x); }
  /// ((c0 x + c1) x + ...) + cn
  Value polynomial(Value x, ArrayRef<float> coefficients) {
    Value value = constant(coefficients.front());
    for (float coefficient : coefficients.drop_front())
      value = fma(value, x, constant(coefficient));
    return value;
  }
  /// x times `factor`, into which a factor that x already has goes.
  Value scale(Value x, float factor) {
    auto product = x.getDefiningOp<arith::MulFOp>();
    FloatAttr inner;
    if (product && matchPattern(product.getRhs(), m_Constant(&inner)))
      return mul(product.getLhs(),
                 constant(factor * inner.getValue().convertToFloat()));
    return mul(x, constant(factor));
  }
  /// One instruction each; 2 ulp off at most, and 1. What is below the smallest
  /// normal number is 0, as for the others.
  Value exp2(Value x) { return call("llvm.nvvm.ex2.approx.ftz.f32", x); }
  Value reciprocal(Value x) { return call("llvm.nvvm.rcp.approx.ftz.f", x); }
  /// An error of 2^-11.
  Value roughTanh(Value x) { return call("llvm.nvvm.tanh.approx.f32", x); }
  Value exp(Value x) { return exp2(scale(x, kLog2E)); }
  /// 2 ulp off at most; an IEEE division is a call on the GPU.
  Value divide(Value lhs, Value rhs) {
    return call("llvm.nvvm.div.full", {lhs, rhs});
  }
  /// `small` up to |x| = `limit`, beyond it `large` with the sign of x.
  Value join(Value x, float limit, Value small, Value large) {
    Value isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, abs(x),
                                          constant(limit));
    return arith::SelectOp::create(
        b, isLarge, math::CopySignOp::create(b, large, x), small);
  }
  Value ifPositive(Value x, Value yes, Value no) {
    Value isPositive =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, constant(0.0f));
    return arith::SelectOp::create(b, isPositive, yes, no);
  }

private:
  Value call(StringRef name, ValueRange arguments) {
    return LLVM::CallIntrinsicOp::create(b, b.getF32Type(),
                                         b.getStringAttr(name), arguments)
        .getResult(0);
  }

  ImplicitLocOpBuilder b;
};

//===----------------------------------------------------------------------===//
// Sums with one
//===----------------------------------------------------------------------===//

/// x if `value` is 1 + f(x), f being an operation `Op` on f32.
template <typename Op>
Op getOtherThanOne(Value value) {
  auto sum = value.getDefiningOp<arith::AddFOp>();
  if (!sum || !sum.getType().isF32())
    return {};
  for (auto [one, other] : {std::pair(sum.getRhs(), sum.getLhs()),
                            std::pair(sum.getLhs(), sum.getRhs())})
    if (matchPattern(one, m_OneFloat()))
      if (auto op = other.getDefiningOp<Op>())
        return op;
  return {};
}

/// erfc(|x|) for x <= 0, else 2 less that; the logarithm of erfc is a
/// polynomial that goes to minus infinity. An error of 8e-8.
struct LowerOnePlusErf : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    auto erf = getOtherThanOne<math::ErfOp>(op);
    if (!erf)
      return rewriter.notifyMatchFailure(op, "expected 1 + erf(x)");
    Approximation b(rewriter, op.getLoc());
    Value x = erf.getOperand(), t = b.abs(x);
    Value log = b.polynomial(t, {-4.5356643e-5f, 4.4548890e-4f, -1.4893736e-3f,
                                 -7.7475025e-4f, 2.8253794e-2f, -1.4848167e-1f,
                                 -9.1841638e-1f, -1.6279086f});
    Value erfc = b.exp2(b.mul(log, t));
    Value rest = b.fma(erfc, b.constant(-1.0f), b.constant(2.0f));
    rewriter.replaceOp(op, b.ifPositive(x, rest, erfc));
    return success();
  }
};

/// 2 / (1 + exp(-2 x)).
struct LowerOnePlusTanh : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    auto tanh = getOtherThanOne<math::TanhOp>(op);
    if (!tanh ||
        bitEnumContainsAll(tanh.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "expected 1 + tanh(x)");
    Approximation b(rewriter, op.getLoc());
    Value power = b.exp2(b.scale(tanh.getOperand(), -2.0f * kLog2E));
    Value half = b.reciprocal(b.add(power, b.constant(1.0f)));
    rewriter.replaceOp(op, b.add(half, half));
    return success();
  }
};

/// x / (1 + exp(y)): the divisor is at least 1, which spares the division its
/// scaling.
struct LowerLogistic : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    auto exp = getOtherThanOne<math::ExpOp>(op.getRhs());
    if (!exp)
      return rewriter.notifyMatchFailure(op, "expected x / (1 + exp(y))");
    Approximation b(rewriter, op.getLoc());
    Value divisor = b.add(b.exp(exp.getOperand()), b.constant(1.0f));
    rewriter.replaceOp(op, b.mul(op.getLhs(), b.reciprocal(divisor)));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// An operation on f32 by its approximation, a function of its operands.
template <typename Op>
struct LowerFunction : OpRewritePattern<Op> {
  using Function = Value (*)(Approximation &, Op);

  LowerFunction(MLIRContext *context, Function function)
      : OpRewritePattern<Op>(context, /*benefit=*/2), function(function) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "expected f32");
    Approximation b(rewriter, op.getLoc());
    rewriter.replaceOp(op, function(b, op));
    return success();
  }

  Function function;
};

Value approximateExp(Approximation &b, math::ExpOp op) {
  return b.exp(op.getOperand());
}

Value approximateDivision(Approximation &b, arith::DivFOp op) {
  return b.divide(op.getLhs(), op.getRhs());
}

/// Two minimax polynomials, around 0 for erf itself and further out for the
/// logarithm of 1 - erf: an error of 1e-7.
Value approximateErf(Approximation &b, math::ErfOp op) {
  Value x = op.getOperand(), t = b.abs(x), s = b.mul(x, x);
  Value small =
      b.fma(b.polynomial(s, {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f,
                             1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f}),
            x, x);
  Value log = b.polynomial(t, {-1.72853470e-5f, 3.83197126e-4f, -3.88396438e-3f,
                               2.42546219e-2f, -1.06777877e-1f, -6.34846687e-1f,
                               -1.28717512e-1f});
  log = b.fma(log, t, b.mul(t, b.constant(-1.0f)));
  Value large = b.fma(b.exp(log), b.constant(-1.0f), b.constant(1.0f));
  return b.join(x, 0.927734375f, small, large);
}

/// 1 - 2 / (exp(2 |x|) + 1), around 0 a polynomial: an error of 2 ulp.
Value approximateTanh(Approximation &b, math::TanhOp op) {
  Value x = op.getOperand(), s = b.mul(x, x), one = b.constant(1.0f);
  if (bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
    return b.roughTanh(x);
  Value series = b.polynomial(s, {1.57394409e-2f, -5.23025580e-2f,
                                  1.33152470e-1f, -3.33327681e-1f, 0.0f});
  Value small = b.fma(series, x, x);
  Value power = b.exp2(b.mul(b.abs(x), b.constant(2.0f * kLog2E)));
  Value quotient = b.reciprocal(b.add(power, one));
  Value large = b.fma(quotient, b.constant(-2.0f), one);
  return b.join(x, 0.55f, small, large);
}

struct LowerKernelMathPass
    : fp8::impl::LowerKernelMathPassBase<LowerKernelMathPass> {
  using Base::Base;

  void runOnOperation() override;
};
} // namespace

void LowerKernelMathPass::runOnOperation() {
  MLIRContext *context = &getContext();
  // Before the functions in them are gone.
  RewritePatternSet sums(context);
  sums.add<LowerLogistic, LowerOnePlusErf, LowerOnePlusTanh>(context);
  RewritePatternSet functions(context);
  functions.add<LowerFunction<math::ExpOp>>(context, approximateExp);
  functions.add<LowerFunction<arith::DivFOp>>(context, approximateDivision);
  functions.add<LowerFunction<math::ErfOp>>(context, approximateErf);
  functions.add<LowerFunction<math::TanhOp>>(context, approximateTanh);
  populateMathPolynomialApproximationPatterns(
      functions, MathPolynomialApproximationOptions());
  if (failed(applyPatternsGreedily(getOperation(), std::move(sums))) ||
      failed(applyPatternsGreedily(getOperation(), std::move(functions))))
    signalPassFailure();
}
