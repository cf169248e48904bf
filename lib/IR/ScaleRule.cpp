//===- ScaleRule.cpp - How scales follow from amaxes ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Formats.h"
#include "fp8/IR/FP8Attrs.h"
#include "fp8/IR/ScalarBuilder.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;

bool ScaleRuleAttr::hasScaleType(Type scaleType) const {
  return isa<Float32Type, Float8E8M0FNUType>(scaleType);
}

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

/// Transformer Engine's current scaling: recipe_common.cuh, numerics of 5.2.
static Value buildTE(ScalarBuilder &b, Value amax, float maxFinite,
                     const ScaleRule &rule) {
  if (rule.epsilon.value > 0.0f) {
    Value epsilon = b.f32(rule.epsilon.value);
    amax = b.select(b.cmpf(arith::CmpFPredicate::OLT, amax, epsilon), epsilon,
                    amax);
  }
  Value scale = b.div(b.f32(maxFinite), amax);
  Value inf = b.f32(std::numeric_limits<float>::infinity());
  scale = b.select(b.cmpf(arith::CmpFPredicate::OEQ, scale, inf),
                   b.f32(rule.overflow.value), scale);
  if (rule.pow2)
    scale = b.floorToPow2(scale);
  return b.select(b.isPositiveFinite(amax), scale, b.f32(1.0f));
}

/// torchao's float8_utils.py: an f64 division and no rule for Inf and NaN.
static Value buildTorchAO(ScalarBuilder &b, Value amax, float maxFinite,
                          const ScaleRule &rule) {
  Value wide = arith::ExtFOp::create(b, b.getF64Type(), amax);
  Value epsilon = b.f64(rule.epsilon.value > 0.0f ? rule.epsilon.value : 1e-12);
  Value isSmall = b.cmpf(arith::CmpFPredicate::OLT, wide, epsilon);
  wide = b.select(isSmall, epsilon, wide);
  Value scale =
      arith::TruncFOp::create(b, b.getF32Type(), b.div(b.f64(maxFinite), wide));
  return rule.pow2 ? b.floorToPow2(scale) : scale;
}

Value ScaleRuleAttr::buildScale(ScalarBuilder &b, Value amax,
                                FloatType format) const {
  auto *build = getStyle() == ScaleStyle::TorchAO ? buildTorchAO : buildTE;
  return build(b, amax, getMaxFinite(format), getRule());
}

//===----------------------------------------------------------------------===//
// E8M0
//===----------------------------------------------------------------------===//

Value ScaleRuleAttr::buildScaleByte(ScalarBuilder &b, Value amax,
                                    FloatType format) const {
  float maxFinite = getMaxFinite(format);
  int64_t emax = llvm::ilogb(llvm::APFloat(maxFinite));
  int64_t mantissaBits = format.getFPMantissaWidth() - 1;
  MXMode mode = getMode();
  Value x = amax;
  if (mode == MXMode::RCeil)
    x = b.mul(amax, b.f32(1.0f / maxFinite));
  Value bits = b.bits(x);
  if (mode == MXMode::Even)
    bits = arith::AddIOp::create(b, bits,
                                 b.i32(int64_t(1) << (23 - mantissaBits - 1)));
  Value exponent = arith::ShRUIOp::create(b, bits, b.i32(23));
  Value mantissa = arith::AndIOp::create(b, bits, b.i32(0x7fffff));
  Value byte = exponent;
  if (mode == MXMode::Ceil || mode == MXMode::RCeil) {
    Value above = b.cmpi(arith::CmpIPredicate::ne, mantissa, b.i32(0));
    // In RCEIL a subnormal rounds up from 2^-127, which is half of the
    // smallest normal number, not from zero.
    if (mode == MXMode::RCeil)
      above = b.select(
          b.cmpi(arith::CmpIPredicate::eq, exponent, b.i32(0)),
          b.cmpi(arith::CmpIPredicate::ugt, mantissa, b.i32(0x400000)), above);
    byte = arith::AddIOp::create(
        b, byte, arith::ExtUIOp::create(b, b.getI32Type(), above));
  }
  if (mode != MXMode::RCeil) {
    byte = arith::SubIOp::create(b, byte, b.i32(emax));
    byte = arith::MaxSIOp::create(b, byte, b.i32(0));
  }
  byte = arith::MinSIOp::create(b, byte, b.i32(0xfe));
  // A finite amax that EVEN rounds up to Inf: torchao takes the exponent of Inf
  // for NaN, and no other system has the mode.
  if (mode == MXMode::Even) {
    Value overflows =
        b.cmpi(arith::CmpIPredicate::uge, bits, b.i32(0x7f800000));
    byte = b.select(overflows, b.i32(0xff), byte);
  }
  // Non-finite amaxes, on the bits before any rounding.
  Value isInf =
      b.cmpi(arith::CmpIPredicate::eq, b.bits(amax), b.i32(0x7f800000));
  Value infByte = b.i32(getNonfinite() == NonFinite::NaN ? 0xff : 0xfe);
  byte = b.select(isInf, infByte, byte);
  return b.select(b.isNaN(amax), b.i32(0xff), byte);
}

//===----------------------------------------------------------------------===//
// Both ways
//===----------------------------------------------------------------------===//

/// 1 / 2^(byte - 127), exact.
static Value buildReciprocal(ScalarBuilder &b, Value byte) {
  Value shifted = arith::ShLIOp::create(
      b, arith::SubIOp::create(b, b.i32(254), byte), b.i32(23));
  // 2^-127 is subnormal, 255 is NaN.
  shifted = b.select(b.cmpi(arith::CmpIPredicate::eq, byte, b.i32(254)),
                     b.i32(0x00400000), shifted);
  shifted = b.select(b.cmpi(arith::CmpIPredicate::eq, byte, b.i32(255)),
                     b.i32(0x7fc00000), shifted);
  return b.fromBits(shifted);
}

std::pair<Value, Value> fp8::buildScales(ScalarBuilder &b,
                                         ScaleRuleAttrInterface rule,
                                         Value amax, FloatType format,
                                         Type scaleType) {
  if (!isa<Float8E8M0FNUType>(scaleType)) {
    Value scale = rule.buildScale(b, amax, format);
    return {scale, b.div(b.f32(1.0f), scale)};
  }
  Value byte = rule.buildScaleByte(b, amax, format);
  Value code = arith::TruncIOp::create(b, b.getI8Type(), byte);
  return {buildReciprocal(b, byte),
          arith::BitcastOp::create(b, scaleType, code)};
}

//===----------------------------------------------------------------------===//
// Two levels
//===----------------------------------------------------------------------===//

static constexpr float kMaxF32 = std::numeric_limits<float>::max();
static constexpr float kMaxE4M3 = fp8rt::kE4M3.getLargest();

/// NaN stays.
static Value limit(ScalarBuilder &b, Value value, float most) {
  Value isAbove = b.cmpf(arith::CmpFPredicate::OGT, value, b.f32(most));
  return b.select(isAbove, b.f32(most), value);
}

std::pair<Value, Value> fp8::buildTensorScales(ScalarBuilder &b, Value amax,
                                               FloatType format) {
  Value whole = b.f32(kMaxE4M3 * getMaxFinite(format));
  Value isUsable = b.isPositiveFinite(amax);
  Value scale = limit(b, b.div(whole, amax), kMaxF32);
  // Not below what undoes the largest scale.
  Value smallest = b.f32(1.0f / kMaxF32);
  Value scaleInv = b.div(amax, whole);
  scaleInv = b.select(b.cmpf(arith::CmpFPredicate::OLT, scaleInv, smallest),
                      smallest, scaleInv);
  return {b.select(isUsable, scale, b.f32(1.0f)),
          b.select(isUsable, scaleInv, b.f32(1.0f))};
}

std::pair<Value, Value> fp8::buildBlockScales(
    ScalarBuilder &b, Value amax, Value tensorScale, FloatType format,
    llvm::function_ref<std::pair<Value, Value>(Value)> encode) {
  // Transformer Engine's kernels multiply by reciprocals in this order; any
  // other gives another code for one block in 2000.
  Value factor =
      b.mul(amax, b.mul(tensorScale, b.f32(1.0f / getMaxFinite(format))));
  auto [scaleInv, decoded] = encode(limit(b, factor, kMaxE4M3));
  Value product = b.mul(decoded, b.div(b.f32(1.0f), tensorScale));
  Value isZero = b.cmpf(arith::CmpFPredicate::OEQ, product, b.f32(0.0f));
  // An infinite scale would make NaN of the zeros in a block.
  Value scale = limit(b, b.div(b.f32(1.0f), product), kMaxF32);
  return {b.select(isZero, b.f32(0.0f), scale), scaleInv};
}
