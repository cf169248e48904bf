//===- FoldPowersOfTwo.cpp - Powers of two into constant scales -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Multiplying by a power of two is exact but where it leaves the range of
// normal numbers. What is known of a scale has to tell that no code, and no
// number that codes stand for, is one of those; of a scale that follows from an
// amax nothing is.
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "fp8/Support/RewriteLog.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#include <cmath>

#define DEBUG_TYPE "fp8-fold-powers-of-two"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FOLDPOWERSOFTWOPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Products with a power of two
//===----------------------------------------------------------------------===//

namespace {
/// source * factor, rounded to the type of source.
struct Product {
  Value source;
  double factor;
};

/// The limits of a float format.
struct FloatLimits {
  explicit FloatLimits(Type type)
      : FloatLimits(cast<FloatType>(type).getFloatSemantics()) {}
  explicit FloatLimits(const llvm::fltSemantics &semantics)
      : smallest(toDouble(llvm::APFloat::getSmallest(semantics))),
        smallestNormal(
            toDouble(llvm::APFloat::getSmallestNormalized(semantics))),
        largest(toDouble(llvm::APFloat::getLargest(semantics))) {}

  static double toDouble(llvm::APFloat value) {
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToDouble();
  }

  double smallest, smallestNormal, largest;
};
} // namespace

/// The positive power of two that all elements of `value` are, or its inverse.
static std::optional<double> getPowerOfTwo(Value value, bool isDivisor) {
  llvm::APFloat constant(0.0);
  if (!matchPattern(value, m_ConstantFloat(&constant)))
    return std::nullopt;
  double factor = FloatLimits::toDouble(constant);
  int exponent;
  if (!(factor > 0) || std::isinf(factor) ||
      std::frexp(factor, &exponent) != 0.5)
    return std::nullopt;
  return isDivisor ? 1 / factor : factor;
}

/// `op`, on scalars or tensors, as a product with a constant.
static std::optional<Product> getProduct(Operation *op) {
  if (auto multiply = dyn_cast_or_null<arith::MulFOp>(op)) {
    if (auto factor = getPowerOfTwo(multiply.getRhs(), /*isDivisor=*/false))
      return Product{multiply.getLhs(), *factor};
    if (auto factor = getPowerOfTwo(multiply.getLhs(), /*isDivisor=*/false))
      return Product{multiply.getRhs(), *factor};
  } else if (auto divide = dyn_cast_or_null<arith::DivFOp>(op)) {
    if (auto factor = getPowerOfTwo(divide.getRhs(), /*isDivisor=*/true))
      return Product{divide.getLhs(), *factor};
  }
  return std::nullopt;
}

/// The tensor and the factor that `value` is the product of, which may be
/// computed in a wider type.
static std::optional<Product> getTensorProduct(Value value) {
  Operation *op = value.getDefiningOp();
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic)
    return getProduct(op);
  if (!generic.hasPureTensorSemantics() || generic.getNumDpsInputs() != 1 ||
      generic.getNumResults() != 1 ||
      generic.getNumLoops() != generic.getNumParallelLoops() ||
      !llvm::all_of(generic.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }) ||
      generic.getInputs().front().getType() != value.getType())
    return std::nullopt;
  Value element = generic.getBody()->getTerminator()->getOperand(0);
  if (auto narrowed = element.getDefiningOp<arith::TruncFOp>();
      narrowed && !narrowed.getRoundingmodeAttr())
    element = narrowed.getIn();
  std::optional<Product> product = getProduct(element.getDefiningOp());
  if (!product)
    return std::nullopt;
  if (auto widened = product->source.getDefiningOp<arith::ExtFOp>())
    product->source = widened.getIn();
  if (product->source != generic.getBody()->getArgument(0))
    return std::nullopt;
  return Product{generic.getInputs().front(), product->factor};
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// The constant `factors`, of f32, times `factor`, if they are normal numbers
/// before and after and `isExact` holds of all.
static FailureOr<DenseFPElementsAttr>
multiply(Value factors, double factor,
         llvm::function_ref<bool(double)> isExact) {
  DenseFPElementsAttr constant;
  if (!factors || !matchPattern(factors, m_Constant(&constant)) ||
      !constant.getElementType().isF32())
    return failure();
  FloatLimits range(constant.getElementType());
  auto isNormal = [&](double value) {
    return value >= range.smallestNormal && value <= range.largest;
  };
  for (const llvm::APFloat &value : constant.getValues<llvm::APFloat>()) {
    double before = FloatLimits::toDouble(value);
    if (!isNormal(before) || !isNormal(before * factor) || !isExact(before))
      return failure();
  }
  return cast<DenseFPElementsAttr>(constant.mapValues(
      constant.getElementType(), [&](const llvm::APFloat &value) {
        return llvm::APFloat(
                   static_cast<float>(FloatLimits::toDouble(value) * factor))
            .bitcastToAPInt();
      }));
}

namespace {
/// quantize(x * 2^k, s) -> quantize(x, s * 2^k): the same codes of the same
/// number, but where x * 2^k is none that its type has. Those all have to
/// saturate, or to round to zero.
struct FoldIntoQuantize : OpRewritePattern<QuantizeOp> {
  FoldIntoQuantize(MLIRContext *context, llvm::Statistic &numFolded)
      : OpRewritePattern(context), numFolded(numFolded) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Product> product = getTensorProduct(op.getSource());
    // What is too small for its type may still become a code by a seed.
    if (!product || op.getTensorScaleInv() || op.getSeed())
      return rewriter.notifyMatchFailure(
          op, "no product with a power of two, two factors, or a seed");
    FloatLimits source(getElementTypeOrSelf(op.getSource()));
    FloatLimits codes(op.getResult().getType().getElementType());
    auto scale = multiply(op.getScale(), product->factor, [&](double scale) {
      // A tie goes to zero, which is even.
      return product->factor > 1
                 ? source.largest * scale >= codes.largest
                 : source.smallestNormal * scale <= codes.smallest / 2;
    });
    if (failed(scale))
      return rewriter.notifyMatchFailure(
          op, "it is not known that a number out of range changes no code");
    LDBG() << "times " << product->factor << ": " << op;
    Value folded = arith::ConstantOp::create(rewriter, op.getLoc(), *scale);
    rewriter.modifyOpInPlace(op, [&] {
      op.getSourceMutable().assign(product->source);
      op.getScaleMutable().assign(folded);
    });
    ++numFolded;
    return success();
  }

  llvm::Statistic &numFolded;
};

/// dequantize(q) * 2^k -> dequantize(q with its factors times 2^k) where all
/// that codes stand for is normal before and after, and is so rounded alike.
template <typename MultiplyOp>
struct FoldIntoDequantize : OpRewritePattern<MultiplyOp> {
  FoldIntoDequantize(MLIRContext *context, llvm::Statistic &numFolded)
      : OpRewritePattern<MultiplyOp>(context), numFolded(numFolded) {}

  LogicalResult matchAndRewrite(MultiplyOp op,
                                PatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1 ||
        !isa<RankedTensorType>(op->getResult(0).getType()))
      return rewriter.notifyMatchFailure(op, "no tensor");
    std::optional<Product> product = getTensorProduct(op->getResult(0));
    auto dequantize =
        product ? product->source.template getDefiningOp<DequantizeOp>()
                : DequantizeOp();
    if (!dequantize)
      return rewriter.notifyMatchFailure(
          op, "no product of a dequantize with a power of two");
    Value scaled = dequantize.getSource();
    ScaledType type = dequantize.getSource().getType();
    Value factors;
    if (auto quantize = scaled.getDefiningOp<QuantizeOp>())
      factors = quantize.getScaleInv();
    else if (auto assemble = scaled.getDefiningOp<AssembleOp>())
      factors = assemble.getScaleInv();
    if (type.getHasTensorScale())
      factors = {};
    FloatLimits codes(type.getElementType());
    FloatLimits result(dequantize.getType().getElementType());
    auto isInRange = [&](double factor) {
      return codes.smallest * factor >= result.smallestNormal &&
             codes.largest * factor <= result.largest;
    };
    auto folded = multiply(factors, product->factor, [&](double factor) {
      return isInRange(factor) && isInRange(factor * product->factor);
    });
    if (failed(folded))
      return rewriter.notifyMatchFailure(
          op, "it is not known that all numbers are normal");
    LDBG() << "times " << product->factor << ": " << dequantize;
    Location loc = op->getLoc();
    auto parts = DisassembleOp::create(rewriter, loc, scaled);
    Value constant = arith::ConstantOp::create(rewriter, loc, *folded);
    Value assembled =
        AssembleOp::create(rewriter, loc, type, parts.getPayload(), constant,
                           /*tensorScaleInv=*/Value());
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, dequantize.getType(),
                                              assembled);
    ++numFolded;
    return success();
  }

  llvm::Statistic &numFolded;
};

struct FoldPowersOfTwoPass
    : fp8::impl::FoldPowersOfTwoPassBase<FoldPowersOfTwoPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldIntoQuantize, FoldIntoDequantize<arith::MulFOp>,
                 FoldIntoDequantize<arith::DivFOp>,
                 FoldIntoDequantize<linalg::GenericOp>>(&getContext(),
                                                        numFolded);
    RewriteLog log(DEBUG_TYPE);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                     GreedyRewriteConfig().setListener(&log))))
      signalPassFailure();
  }
};
} // namespace
