//===- ScalarBuilder.h - Arithmetic with little ceremony --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recipes say what they compute of single numbers with these; passes put that
// into loops and kernels. All of it is exact: IEEE operations with one rounding
// each, and subnormal numbers kept, on every target.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_SCALARBUILDER_H
#define FP8_IR_SCALARBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fp8 {

/// Builds scalar arithmetic on f32 and i32.
class ScalarBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value f32(float value) {
    return arith::ConstantOp::create(*this, getF32FloatAttr(value));
  }
  Value f64(double value) {
    return arith::ConstantOp::create(*this, getF64FloatAttr(value));
  }
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(*this, getI32Type(), value);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(*this, value);
  }
  /// f32 to its bits and back.
  Value bits(Value x) {
    return arith::BitcastOp::create(*this, getI32Type(), x);
  }
  Value fromBits(Value x) {
    return arith::BitcastOp::create(*this, getF32Type(), x);
  }
  Value cmpf(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(*this, predicate, a, b);
  }
  Value cmpi(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(*this, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(*this, condition, a, b);
  }
  Value both(Value a, Value b) { return arith::AndIOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(*this, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(*this, a, b); }
  Value isNaN(Value x) { return cmpf(arith::CmpFPredicate::UNO, x, x); }
  /// Finite and above zero; false for NaN.
  Value isPositiveFinite(Value x) {
    return both(cmpf(arith::CmpFPredicate::OGT, x, f32(0.0f)),
                cmpf(arith::CmpFPredicate::OLE, x,
                     f32(std::numeric_limits<float>::max())));
  }
  /// The largest power of two not above `x`, 0 for a subnormal one; NaN stays
  /// NaN.
  Value floorToPow2(Value x) {
    Value cleared =
        fromBits(arith::AndIOp::create(*this, bits(x), i32(0xff800000)));
    return select(isNaN(x), x, cleared);
  }
};

/// The end of a step for one slot of a scaling state.
class SlotUpdateBuilder : public ScalarBuilder {
public:
  virtual ~SlotUpdateBuilder() = default;

  /// The bits of the slot's amax in this step, i32, without its sign; 0 for
  /// none. Their order is that of the amaxes, with NaN above Inf.
  Value getAmaxBits() const { return amaxBits; }
  /// The scale of this step, f32.
  Value getScale() const { return scale; }
  /// The largest finite value of the slot's format, f32.
  Value getMaxFinite() const { return maxFinite; }

  /// One of the slot's words, all i32. Stores stand where the builder was when
  /// it was handed out, not in loops or branches; a load sees the stores before
  /// it.
  virtual Value loadWord(Value position) = 0;
  virtual void storeWord(Value position, Value word) = 0;

protected:
  SlotUpdateBuilder(Location loc, OpBuilder &builder, Value amaxBits,
                    Value scale, Value maxFinite)
      : ScalarBuilder(loc, builder), amaxBits(amaxBits), scale(scale),
        maxFinite(maxFinite) {}

private:
  Value amaxBits, scale, maxFinite;
};

} // namespace mlir::fp8

#endif // FP8_IR_SCALARBUILDER_H
