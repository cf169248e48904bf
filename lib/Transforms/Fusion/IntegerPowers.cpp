//===- IntegerPowers.cpp - Integer powers as products ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerPowers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::fp8;

/// The same for an exponent that is known when the program runs: squares by all
/// of its bits, of which it takes those that are set.
static Value multiplyByBits(ImplicitLocOpBuilder &b, Value square,
                            Value exponent, Value one,
                            arith::FastMathFlagsAttr flags) {
  Type type = exponent.getType();
  auto constant = [&](const APInt &value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  };
  unsigned width = type.getIntOrFloatBitWidth();
  Value zero = constant(APInt(width, 0));
  Value isNegative =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, exponent, zero);
  Value magnitude = arith::SelectOp::create(
      b, isNegative, arith::SubIOp::create(b, zero, exponent), exponent);
  Value result = one;
  for (unsigned bit = 0; bit < width; ++bit) {
    Value isSet = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, magnitude,
                              constant(APInt::getOneBitSet(width, bit))),
        zero);
    result = arith::SelectOp::create(
        b, isSet, arith::MulFOp::create(b, result, square, flags), result);
    if (bit + 1 < width)
      square = arith::MulFOp::create(b, square, square, flags);
  }
  return arith::SelectOp::create(
      b, isNegative, arith::DivFOp::create(b, one, result, flags), result);
}

namespace {
struct ExpandFPowI : OpRewritePattern<math::FPowIOp> {
  using Base::Base;
  LogicalResult matchAndRewrite(math::FPowIOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<FloatType>(op.getType());
    APInt exponent;
    if (!type)
      return rewriter.notifyMatchFailure(op, "expected a power of one number");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    bool isKnown = matchPattern(op.getRhs(), m_ConstantInt(&exponent));
    FloatType wide = type.getWidth() < 32 ? b.getF32Type() : type;
    arith::FastMathFlagsAttr flags = op.getFastmathAttr();
    Value square = op.getLhs();
    if (wide != type)
      square = arith::ExtFOp::create(b, wide, square);
    Value one = arith::ConstantOp::create(b, b.getFloatAttr(wide, 1.0));
    Value result;
    if (!isKnown) {
      result = multiplyByBits(b, square, op.getRhs(), one, flags);
      if (wide != type)
        result = arith::TruncFOp::create(b, type, result);
      rewriter.replaceOp(op, result);
      return success();
    }
    for (APInt rest = exponent.abs(); !rest.isZero(); rest.lshrInPlace(1)) {
      if (rest[0])
        result =
            result ? arith::MulFOp::create(b, result, square, flags) : square;
      if (rest.ugt(1))
        square = arith::MulFOp::create(b, square, square, flags);
    }
    if (!result)
      result = one;
    else if (exponent.isNegative())
      result = arith::DivFOp::create(b, one, result, flags);
    if (wide != type)
      result = arith::TruncFOp::create(b, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};
} // namespace

void fp8::populateIntegerPowersPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandFPowI>(patterns.getContext());
}
