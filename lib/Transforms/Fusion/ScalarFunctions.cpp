//===- ScalarFunctions.cpp - Functions that targets lack ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarFunctions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// What a number is, by its magnitude.
template <typename Op>
struct ExpandTest : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<FloatType>(op.getOperand().getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "expected a scalar");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value magnitude = math::AbsFOp::create(b, op.getOperand());
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    auto compare = [&](arith::CmpFPredicate predicate,
                       const APFloat &bound) -> Value {
      return arith::CmpFOp::create(
          b, predicate, magnitude,
          arith::ConstantOp::create(b, b.getFloatAttr(type, bound)));
    };
    APFloat infinity = APFloat::getInf(semantics);
    if constexpr (std::is_same_v<Op, math::IsInfOp>) {
      rewriter.replaceOp(op, compare(arith::CmpFPredicate::OEQ, infinity));
    } else {
      Value isFinite = compare(arith::CmpFPredicate::OLT, infinity);
      Value isLarge = compare(arith::CmpFPredicate::OGE,
                              APFloat::getSmallestNormalized(semantics));
      rewriter.replaceOp(op, arith::AndIOp::create(b, isFinite, isLarge));
    }
    return success();
  }
};

struct ExpandSincos : OpRewritePattern<math::SincosOp> {
  using Base::Base;
  LogicalResult matchAndRewrite(math::SincosOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    Value sin =
        math::SinOp::create(rewriter, op.getLoc(), x, op.getFastmathAttr());
    Value cos =
        math::CosOp::create(rewriter, op.getLoc(), x, op.getFastmathAttr());
    rewriter.replaceOp(op, {sin, cos});
    return success();
  }
};

/// Upstream has no code for the carry of an index.
struct ExpandIndexCarry : OpRewritePattern<arith::AddUIExtendedOp> {
  using Base::Base;
  LogicalResult matchAndRewrite(arith::AddUIExtendedOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getSum().getType().isIndex())
      return rewriter.notifyMatchFailure(op, "expected an index");
    Location loc = op.getLoc();
    Value sum = arith::AddIOp::create(rewriter, loc, op.getLhs(), op.getRhs());
    Value carry = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::ult, sum, op.getLhs());
    rewriter.replaceOp(op, {sum, carry});
    return success();
  }
};

/// By the bits of the exponent. 1 over a power that is none is 0, as integers
/// divide.
struct ExpandIPowI : OpRewritePattern<math::IPowIOp> {
  using Base::Base;
  LogicalResult matchAndRewrite(math::IPowIOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getType().isIndex()) {
      Location loc = op.getLoc();
      auto cast = [&](Type type, Value value) {
        return arith::IndexCastOp::create(rewriter, loc, type, value);
      };
      Type i64 = rewriter.getI64Type();
      Value power = math::IPowIOp::create(rewriter, loc, cast(i64, op.getLhs()),
                                          cast(i64, op.getRhs()));
      rewriter.replaceOp(op, cast(op.getType(), power));
      return success();
    }
    auto type = dyn_cast<IntegerType>(op.getType());
    if (!type || type.getWidth() > 64)
      return rewriter.notifyMatchFailure(op, "expected a scalar of 64 bits");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(
          b, b.getIntegerAttr(type, APInt(type.getWidth(), value,
                                          /*isSigned=*/true,
                                          /*implicitTrunc=*/true)));
    };
    auto is = [&](arith::CmpIPredicate predicate, Value x, int64_t value) {
      return arith::CmpIOp::create(b, predicate, x, constant(value));
    };
    Value base = op.getLhs(), exponent = op.getRhs();
    Value result = constant(1), square = base, odd;
    for (unsigned bit = 0; bit + 1 < std::max(type.getWidth(), 2u); ++bit) {
      Value mask = constant(int64_t(1) << bit);
      Value isSet = arith::CmpIOp::create(
          b, arith::CmpIPredicate::ne, arith::AndIOp::create(b, exponent, mask),
          constant(0));
      odd = odd ? odd : isSet;
      result = arith::SelectOp::create(
          b, isSet, arith::MulIOp::create(b, result, square), result);
      if (bit + 2 < type.getWidth())
        square = arith::MulIOp::create(b, square, square);
    }
    if (type.getWidth() > 1) {
      // 1 and -1 are their own inverses.
      Value ofMinusOne =
          arith::SelectOp::create(b, odd, constant(-1), constant(1));
      Value inverse = arith::SelectOp::create(
          b, is(arith::CmpIPredicate::eq, base, 1), constant(1),
          arith::SelectOp::create(b, is(arith::CmpIPredicate::eq, base, -1),
                                  ofMinusOne, constant(0)));
      result = arith::SelectOp::create(
          b, is(arith::CmpIPredicate::slt, exponent, 0), inverse, result);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};
} // namespace

void fp8::populateScalarFunctionsPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandTest<math::IsInfOp>, ExpandTest<math::IsNormalOp>,
               ExpandSincos, ExpandIPowI, ExpandIndexCarry>(
      patterns.getContext());
  math::populateExpansionPatterns(patterns, {"clampf"});
}
