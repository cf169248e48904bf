//===- LowerApproximateMath.cpp - Functions as approximate instructions ---===//
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

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "fp8/GPU/Transforms/Passes.h"
#include "fp8/IR/ExactMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERAPPROXIMATEMATHPASS
#include "fp8/GPU/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static constexpr float kLog2E = 1.44269504088896340736f;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {
/// What a value is a product of: constants, and other values.
struct Product {
  SmallVector<float> constants;
  SmallVector<Value> factors;

  float getConstant() const { return llvm::product_of(constants, 1.0f); }
};
} // namespace

/// Looks into a few products in products only: their number may double with
/// each.
static void addFactors(Value value, Product &product, int64_t depth = 3) {
  FloatAttr constant;
  auto op = value.getDefiningOp<arith::MulFOp>();
  if (matchPattern(value, m_Constant(&constant))) {
    product.constants.push_back(constant.getValue().convertToFloat());
  } else if (op && depth > 0) {
    addFactors(op.getLhs(), product, depth - 1);
    addFactors(op.getRhs(), product, depth - 1);
  } else {
    product.factors.push_back(value);
  }
}

static Product getProduct(Value value) {
  Product product;
  addFactors(value, product);
  return product;
}

/// x and c if `value` is x * c, c being a constant; else `value` and 1.
static std::pair<Value, float> splitFactor(Value value) {
  FloatAttr constant;
  if (auto product = value.getDefiningOp<arith::MulFOp>())
    for (auto [x, factor] : {std::pair(product.getLhs(), product.getRhs()),
                             std::pair(product.getRhs(), product.getLhs())})
      if (matchPattern(factor, m_Constant(&constant)))
        return {x, constant.getValue().convertToFloat()};
  return {value, 1.0f};
}

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
  Value multiply(ArrayRef<Value> factors) {
    Value value = factors.front();
    for (Value factor : factors.drop_front())
      value = mul(value, factor);
    return value;
  }
  /// x times `factor`, into which a factor that x already has goes. A sum
  /// v + v r is v (1 + r), and takes the factor along in 1 + r.
  Value scale(Value x, float factor) {
    auto [inner, innerFactor] = splitFactor(x);
    factor *= innerFactor;
    if (auto sum = inner.getDefiningOp<arith::AddFOp>())
      for (auto [v, term] : {std::pair(sum.getLhs(), sum.getRhs()),
                             std::pair(sum.getRhs(), sum.getLhs())}) {
        Product rest = getProduct(term);
        auto *found = llvm::find(rest.factors, v);
        if (found == rest.factors.end() || rest.factors.size() == 1)
          continue;
        rest.factors.erase(found);
        return mul(v, fma(multiply(rest.factors),
                          constant(rest.getConstant() * factor),
                          constant(factor)));
      }
    return factor == 1.0f ? inner : mul(inner, constant(factor));
  }
  /// One instruction each; 2 ulp off at most, and 1. What is below the smallest
  /// normal number is 0, as for the others.
  Value exp2(Value x) { return call("llvm.nvvm.ex2.approx.ftz.f32", x); }
  Value sqrt(Value x) { return call("llvm.nvvm.sqrt.approx.ftz.f", x); }
  Value reciprocal(Value x) { return call("llvm.nvvm.rcp.approx.ftz.f", x); }
  /// One instruction, with an error of 2^-11: what LLVM makes of this function
  /// where an approximation will do.
  Value roughTanh(Value x) {
    return call("llvm.tanh.f32", x, LLVM::FastmathFlags::afn);
  }
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
  Value call(StringRef name, ValueRange arguments,
             LLVM::FastmathFlags fastMath = LLVM::FastmathFlags::none) {
    return LLVM::CallIntrinsicOp::create(
               b, b.getF32Type(), b.getStringAttr(name), arguments,
               LLVM::FastmathFlagsAttr::get(b.getContext(), fastMath))
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

/// erfc(|x|) for x <= 0, else 2 less that; the logarithm of erfc is |x| times a
/// polynomial, and goes to minus infinity. A factor of x goes into the
/// coefficients. Their error is 2e-8, or 1.7e-4 if an approximation will do.
struct LowerOnePlusErf : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    auto erf = getOtherThanOne<math::ErfOp>(op);
    if (!erf)
      return rewriter.notifyMatchFailure(op, "expected 1 + erf(x)");
    Approximation b(rewriter, op.getLoc());
    static constexpr double kFine[] = {
        -4.535860496e-05, 4.455077214e-04,  -1.489441938e-03, -7.746290605e-04,
        2.825368048e-02,  -1.484816148e-01, -9.184163933e-01, -1.627908593};
    static constexpr double kRough[] = {-9.097777746e-02, -9.537150198e-01,
                                        -1.622178614};
    bool isRough =
        bitEnumContainsAll(erf.getFastmath(), arith::FastMathFlags::afn);
    auto [x, factor] = splitFactor(erf.getOperand());
    if (!(factor > 0x1p-8f && factor < 0x1p8f)) {
      x = erf.getOperand();
      factor = 1.0f;
    }
    Value t = b.abs(x);
    SmallVector<float> coefficients;
    double power = 1.0;
    for (double coefficient :
         llvm::reverse(isRough ? ArrayRef(kRough) : ArrayRef(kFine)))
      coefficients.push_back(coefficient * (power *= factor));
    std::reverse(coefficients.begin(), coefficients.end());
    Value erfc = b.exp2(b.mul(b.polynomial(t, coefficients), t));
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
    rewriter.replaceOp(op, b.mul(half, b.constant(2.0f)));
    return success();
  }
};

/// The factors 2 and 1/2 of a product are one, or none at all.
struct MergeFactors : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "expected f32");
    Product product = getProduct(op);
    if (product.constants.size() != 2 || product.factors.empty() ||
        product.getConstant() != 1.0f ||
        !llvm::is_contained(product.constants, 2.0f))
      return rewriter.notifyMatchFailure(op, "expected factors 2 and 1/2");
    Approximation b(rewriter, op.getLoc());
    rewriter.replaceOp(op, b.multiply(product.factors));
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

/// What is in range needs no scaling, which quotients by more than 2^126 want:
/// the inverse of such a divisor is subnormal.
Value approximateDivision(Approximation &b, arith::DivFOp op) {
  if (op->hasAttr(kRoughAttrName))
    return b.mul(op.getLhs(), b.reciprocal(op.getRhs()));
  return b.divide(op.getLhs(), op.getRhs());
}

/// Roots are exact unless what they are of is in range, too: that of a
/// subnormal number is 0 here.
struct LowerRoughSqrt : OpRewritePattern<math::SqrtOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::SqrtOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32() || !op->hasAttr(kRoughAttrName))
      return rewriter.notifyMatchFailure(op, "expected f32 with fp8.rough");
    Approximation b(rewriter, op.getLoc());
    rewriter.replaceOp(op, b.sqrt(op.getOperand()));
    return success();
  }
};

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
  if (bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
    return b.roughTanh(b.scale(op.getOperand(), 1.0f));
  Value x = op.getOperand(), s = b.mul(x, x), one = b.constant(1.0f);
  Value series = b.polynomial(s, {1.57394409e-2f, -5.23025580e-2f,
                                  1.33152470e-1f, -3.33327681e-1f, 0.0f});
  Value small = b.fma(series, x, x);
  Value power = b.exp2(b.mul(b.abs(x), b.constant(2.0f * kLog2E)));
  Value quotient = b.reciprocal(b.add(power, one));
  Value large = b.fma(quotient, b.constant(-2.0f), one);
  return b.join(x, 0.55f, small, large);
}

struct LowerApproximateMathPass
    : fp8::impl::LowerApproximateMathPassBase<LowerApproximateMathPass> {
  using Base::Base;

  void runOnOperation() override;
};
} // namespace

void LowerApproximateMathPass::runOnOperation() {
  auto math = getOperation()->getAttrOfType<KernelMathAttr>(kMathAttrName);
  if (!math || math.getValue() != KernelMath::Approximate)
    return markAllAnalysesPreserved();
  MLIRContext *context = &getContext();
  // Before the functions in them are gone.
  RewritePatternSet sums(context);
  sums.add<LowerLogistic, LowerOnePlusErf, LowerOnePlusTanh, MergeFactors,
           LowerRoughSqrt>(context);
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
