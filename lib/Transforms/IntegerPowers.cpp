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

namespace {
struct ExpandFPowI : OpRewritePattern<math::FPowIOp> {
  using Base::Base;
  LogicalResult matchAndRewrite(math::FPowIOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<FloatType>(op.getType());
    APInt exponent;
    if (!type)
      return rewriter.notifyMatchFailure(op, "expected a power of one number");
    if (!matchPattern(op.getRhs(), m_ConstantInt(&exponent)))
      return rewriter.notifyMatchFailure(op, "expected a constant exponent");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    FloatType wide = type.getWidth() < 32 ? b.getF32Type() : type;
    arith::FastMathFlagsAttr flags = op.getFastmathAttr();
    Value square = op.getLhs();
    if (wide != type)
      square = arith::ExtFOp::create(b, wide, square);
    Value one = arith::ConstantOp::create(b, b.getFloatAttr(wide, 1.0));
    Value result;
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
