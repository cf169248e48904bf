//===- CastBuilder.h - Arithmetic on scalars or vectors ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_CONVERSION_EXPANDFLOATCASTS_CASTBUILDER_H
#define FP8_CONVERSION_EXPANDFLOATCASTS_CASTBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::fp8 {

/// Builds arithmetic of one shape: the scalar or vector shape of the cast.
class CastBuilder {
public:
  CastBuilder(OpBuilder &builder, Location loc, Type like)
      : builder(builder), loc(loc), vectorType(dyn_cast<VectorType>(like)) {}

  Type shaped(Type element) {
    return vectorType ? Type(vectorType.clone(element)) : element;
  }
  Type intType(unsigned width) { return shaped(builder.getIntegerType(width)); }
  Type f32() { return shaped(builder.getF32Type()); }

  Value constant(TypedAttr element) {
    if (vectorType)
      element = DenseElementsAttr::get(
          cast<ShapedType>(shaped(element.getType())), Attribute(element));
    return arith::ConstantOp::create(builder, loc, element);
  }
  /// An integer constant of the width of `like`'s elements.
  Value constantLike(Value like, uint64_t value) {
    Type element = getElementTypeOrSelf(like.getType());
    APInt bits(element.getIntOrFloatBitWidth(), value, /*isSigned=*/false,
               /*implicitTrunc=*/true);
    return constant(IntegerAttr::get(element, bits));
  }
  Value f32FromBits(uint32_t bits) {
    return constant(FloatAttr::get(
        builder.getF32Type(), APFloat(APFloat::IEEEsingle(), APInt(32, bits))));
  }

  template <typename OpTy>
  Value op(Value lhs, uint64_t rhs) {
    return OpTy::create(builder, loc, lhs, constantLike(lhs, rhs));
  }
  template <typename OpTy>
  Value op(Value lhs, Value rhs) {
    return OpTy::create(builder, loc, lhs, rhs);
  }
  template <typename OpTy>
  Value convert(Type type, Value value) {
    return OpTy::create(builder, loc, type, value);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, uint64_t rhs) {
    return compare(predicate, lhs, constantLike(lhs, rhs));
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpFOp::create(builder, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value whenTrue, Value whenFalse) {
    return arith::SelectOp::create(builder, loc, condition, whenTrue,
                                   whenFalse);
  }

  Value bitsOf(Value f32Value) {
    return convert<arith::BitcastOp>(intType(32), f32Value);
  }
  Value f32Of(Value bits) { return convert<arith::BitcastOp>(f32(), bits); }

private:
  OpBuilder &builder;
  Location loc;
  VectorType vectorType;
};

} // namespace mlir::fp8

#endif // FP8_CONVERSION_EXPANDFLOATCASTS_CASTBUILDER_H
