//===- DoubleFunctions.cpp - Functions of f64 as arithmetic ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DoubleFunctions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;

/// ln 2, in a part whose products with exponents are exact and the rest.
static constexpr double kLn2High = 0x1.62e42fee00000p-1;
static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
/// Arithmetic on f64 and its bits.
struct Doubles {
  Doubles(PatternRewriter &rewriter, Location loc) : b(loc, rewriter) {}

  Value constant(double value) {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  }
  Value integer(int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, x, y, z);
  }
  Value select(arith::CmpFPredicate predicate, Value x, double bound, Value yes,
               Value no) {
    Value holds = arith::CmpFOp::create(b, predicate, x, constant(bound));
    return arith::SelectOp::create(b, holds, yes, no);
  }
  /// ((c0 x + c1) x + ...) + cn
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value value = constant(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      value = fma(value, x, constant(coefficient));
    return value;
  }
  /// 2 to the power of an integer from -1022 to 1023.
  Value power(Value exponent) {
    Value bits = arith::ShLIOp::create(
        b, arith::AddIOp::create(b, exponent, integer(1023)), integer(52));
    return arith::BitcastOp::create(b, b.getF64Type(), bits);
  }

  ImplicitLocOpBuilder b;
};

/// 2^n exp(r), r being at most half of ln 2; the power in two parts, so that
/// subnormal results are rounded once.
Value buildExp(Doubles &d, Value x) {
  // Beyond these it is 0 and infinity for certain; NaN takes neither.
  Value inside =
      d.select(arith::CmpFPredicate::OGT, x, 720, d.constant(720), x);
  inside = d.select(arith::CmpFPredicate::OLT, inside, -760, d.constant(-760),
                    inside);
  inside =
      d.select(arith::CmpFPredicate::UNO, inside, 0, d.constant(0), inside);
  Value n = math::RoundEvenOp::create(
      d.b, d.mul(inside, d.constant(1.44269504088896340736)));
  Value r = d.fma(n, d.constant(-kLn2High), inside);
  r = d.fma(n, d.constant(-kLn2Low), r);
  // 1 / k!, k from 13.
  SmallVector<double> coefficients;
  double factorial = 1;
  for (int k = 0; k <= 13; ++k) {
    factorial *= std::max(1, k);
    coefficients.push_back(1 / factorial);
  }
  std::reverse(coefficients.begin(), coefficients.end());
  Value result = d.polynomial(r, coefficients);
  Value whole = arith::FPToSIOp::create(d.b, d.b.getI64Type(), n);
  Value half = arith::ShRSIOp::create(d.b, whole, d.integer(1));
  result = d.mul(result, d.power(half));
  result = d.mul(result, d.power(arith::SubIOp::create(d.b, whole, half)));
  return d.select(arith::CmpFPredicate::UNO, x, 0, x, result);
}

/// x = 2^e m, m from sqrt(1/2) to sqrt(2): e ln 2 + 2 atanh((m - 1) / (m + 1)).
Value buildLog(Doubles &d, Value x) {
  // Subnormal numbers have no exponent.
  constexpr double least = std::numeric_limits<double>::min();
  Value scaled = d.select(arith::CmpFPredicate::OLT, x, least,
                          d.mul(x, d.constant(0x1p54)), x);
  Value shift = d.select(arith::CmpFPredicate::OLT, x, least, d.constant(-54),
                         d.constant(0));
  Value bits = arith::BitcastOp::create(d.b, d.b.getI64Type(), scaled);
  // The upper half begins where m is sqrt(1/2).
  constexpr int64_t root = 0x3fe6a09e667f3bcd;
  Value above = arith::SubIOp::create(d.b, bits, d.integer(root));
  Value exponent = arith::ShRSIOp::create(d.b, above, d.integer(52));
  Value mantissa = arith::SubIOp::create(
      d.b, bits, arith::ShLIOp::create(d.b, exponent, d.integer(52)));
  Value m = arith::BitcastOp::create(d.b, d.b.getF64Type(), mantissa);
  Value e =
      d.add(arith::SIToFPOp::create(d.b, d.b.getF64Type(), exponent), shift);
  Value f = d.add(m, d.constant(-1));
  Value s = arith::DivFOp::create(d.b, f, d.add(f, d.constant(2)));
  Value square = d.mul(s, s);
  // 2 / (2k + 1), k from 11 to 1.
  SmallVector<double> coefficients;
  for (int k = 11; k >= 1; --k)
    coefficients.push_back(2.0 / (2 * k + 1));
  Value rest = d.mul(square, d.polynomial(square, coefficients));
  // log(1 + f) = f - (f^2/2 - s (f^2/2 + rest)), whose first term is exact.
  Value half = d.mul(d.mul(f, f), d.constant(0.5));
  Value tail = d.fma(s, d.add(half, rest), d.mul(e, d.constant(kLn2Low)));
  Value negative = arith::SubFOp::create(d.b, half, tail);
  Value small = arith::SubFOp::create(d.b, f, negative);
  Value result = d.fma(e, d.constant(kLn2High), small);
  result = d.select(arith::CmpFPredicate::OEQ, x, kInfinity, x, result);
  result =
      d.select(arith::CmpFPredicate::ULT, x, 0,
               d.constant(std::numeric_limits<double>::quiet_NaN()), result);
  return d.select(arith::CmpFPredicate::OEQ, x, 0, d.constant(-kInfinity),
                  result);
}

template <typename Op>
struct ExpandDouble : OpRewritePattern<Op> {
  using Function = Value (*)(Doubles &, Value);
  ExpandDouble(MLIRContext *context, Function function, double factor = 1)
      : OpRewritePattern<Op>(context), function(function), factor(factor) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF64())
      return rewriter.notifyMatchFailure(op, "expected f64");
    Doubles d(rewriter, op.getLoc());
    Value result = function(d, op.getOperand());
    if (factor != 1)
      result = d.mul(result, d.constant(factor));
    rewriter.replaceOp(op, result);
    return success();
  }

  Function function;
  double factor;
};
} // namespace

void fp8::populateDoubleFunctionsPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<ExpandDouble<math::ExpOp>>(context, buildExp);
  patterns.add<ExpandDouble<math::LogOp>>(context, buildLog);
  patterns.add<ExpandDouble<math::Log2Op>>(context, buildLog,
                                           1.44269504088896340736);
  patterns.add<ExpandDouble<math::Log10Op>>(context, buildLog,
                                            0.43429448190325182765);
}
