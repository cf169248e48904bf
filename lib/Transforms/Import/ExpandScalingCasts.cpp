//===- ExpandScalingCasts.cpp - Scaled casts as arithmetic ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandScalingCasts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::fp8;

/// `type` with `element` as its elements, or `element` for a scalar.
static Type withElement(Type type, Type element) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.clone(element);
  return element;
}

static Value toF32(ImplicitLocOpBuilder &b, Value value) {
  if (getElementTypeOrSelf(value).isF32())
    return value;
  return arith::ExtFOp::create(b, withElement(value.getType(), b.getF32Type()),
                               value);
}

/// The factor in f32: a power of two, or NaN. Of a wider float it is the
/// exponent field, as the operations define it.
static Value buildFactor(ImplicitLocOpBuilder &b, Value scale) {
  if (isa<Float8E8M0FNUType>(getElementTypeOrSelf(scale)))
    return toF32(b, scale);
  Type type = scale.getType();
  Type i32 = withElement(type, b.getI32Type());
  auto constant = [&](int32_t value) -> Value {
    TypedAttr attribute = b.getI32IntegerAttr(value);
    if (auto shaped = dyn_cast<ShapedType>(i32))
      attribute = DenseElementsAttr::get(shaped, attribute);
    return arith::ConstantOp::create(b, attribute);
  };
  Value bits = arith::BitcastOp::create(b, i32, toF32(b, scale));
  bits = arith::ShRUIOp::create(b, bits, constant(23));
  bits = arith::TruncIOp::create(b, withElement(type, b.getI8Type()), bits);
  Value code = arith::BitcastOp::create(
      b, withElement(type, b.getType<Float8E8M0FNUType>()), bits);
  return toF32(b, code);
}

static Value fromF32(ImplicitLocOpBuilder &b, Value value, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isF32())
    return value;
  if (element.isF64())
    return arith::ExtFOp::create(b, type, value);
  return arith::TruncFOp::create(b, type, value);
}

static bool isNarrow(Value value) {
  return getElementTypeOrSelf(value).getIntOrFloatBitWidth() <= 32;
}

LogicalResult fp8::expandScalingCast(RewriterBase &rewriter, Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), rewriter);
  b.setInsertionPoint(op);
  if (auto extension = dyn_cast<arith::ScalingExtFOp>(op)) {
    if (!isNarrow(extension.getIn()) || !isNarrow(extension.getScale()))
      return failure();
    Value product = arith::MulFOp::create(b, toF32(b, extension.getIn()),
                                          buildFactor(b, extension.getScale()));
    rewriter.replaceOp(op, fromF32(b, product, extension.getType()));
    return success();
  }
  auto truncation = cast<arith::ScalingTruncFOp>(op);
  auto rounding = truncation.getRoundingmode();
  if (!isNarrow(truncation.getIn()) || !isNarrow(truncation.getScale()) ||
      (rounding && *rounding != arith::RoundingMode::to_nearest_even))
    return failure();
  Value quotient = arith::DivFOp::create(b, toF32(b, truncation.getIn()),
                                         buildFactor(b, truncation.getScale()));
  rewriter.replaceOp(op, fromF32(b, quotient, truncation.getType()));
  return success();
}
