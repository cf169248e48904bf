//===- ExpandFloatCasts.cpp - Small float casts as integer arithmetic -----===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// arith.truncf and arith.extf on 8-bit, 4-bit and bf16 floats go in; integer
// arithmetic and casts that LLVM knows come out. Everything runs in the lanes
// of an f32 until the last truncation, without branches and without f32
// subnormals, so that LLVM's loop vectorizer sees plain 32-bit arithmetic.
//
//===----------------------------------------------------------------------===//

#include "CastBuilder.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/IR/Formats.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_EXPANDFLOATCASTSPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using arith::CmpFPredicate;
using arith::CmpIPredicate;
using fp8::CastBuilder;

static constexpr uint32_t kF32SignBit = 0x80000000;
static constexpr uint32_t kF32InfBits = 0x7F800000;
static constexpr unsigned kF32MantissaBits = 23;
static constexpr int kF32Bias = 127;

namespace {
/// The facts about a signed format of up to 8 bits that its casts depend on.
/// Codes are sign, exponent, mantissa from the top.
struct SmallFormat {
  unsigned width;
  unsigned mantissaBits;
  int bias;
  /// The code of what lies beyond the largest finite value: NaN, Inf or, in a
  /// format that has neither, that largest value. It follows or ends the codes
  /// of the finite magnitudes, so that an unsigned minimum saturates to it.
  uint32_t overflowCode;
  bool overflowIsNaN;
  /// What NaN becomes, whatever its sign.
  uint32_t nanCode;

  int minExponent() const { return 1 - bias; }
  uint32_t signBit() const { return 1u << (width - 1); }
  bool hasInf() const { return overflowCode != nanCode; }
  uint32_t largestCode() const {
    return overflowIsNaN || hasInf() ? overflowCode - 1 : overflowCode;
  }
  unsigned numDroppedBits() const { return kF32MantissaBits - mantissaBits; }
  /// The f32 bits of a code's value. The codes of magnitudes are in order, and
  /// the first one after the finite ones gets the value that would follow.
  uint32_t bitsOfCode(uint32_t code) const {
    return (code << numDroppedBits()) +
           (uint32_t(kF32Bias - bias) << kF32MantissaBits);
  }
};
} // namespace

static std::optional<SmallFormat> getSmallFormat(Type element) {
  const fp8rt::NumberFormat *format = fp8::getNumberFormat(element);
  if (!format || format->getBits() > 8 || format->signBits == 0)
    return std::nullopt;
  bool hasInf = format->specials == fp8rt::Specials::Top;
  return SmallFormat{static_cast<unsigned>(format->getBits()),
                     static_cast<unsigned>(format->mantissaBits),
                     format->getBias(),
                     hasInf ? format->getInfCode() : format->getLastCode(),
                     format->specials == fp8rt::Specials::Largest,
                     format->getLastCode()};
}

/// Between these LLVM has all casts, exact and fast.
static bool isSupportedByLLVM(Type element) {
  return isa<Float16Type, Float32Type, Float64Type>(element);
}

static bool isKnown(Type element) {
  return isSupportedByLLVM(element) || getSmallFormat(element) ||
         isa<BFloat16Type, Float8E8M0FNUType>(element);
}

//===----------------------------------------------------------------------===//
// Towards f32: always exact
//===----------------------------------------------------------------------===//

/// Every signed small format, its exponent moved by a power of two, is an f16
/// with the same subnormals, so a shift and LLVM's own extension of f16 decode
/// it. That is one instruction on x86 and Arm, and unlike an f32 subnormal it
/// is never slow.
static Value extendSmallFormat(CastBuilder &b, Value code,
                               const SmallFormat &format) {
  constexpr unsigned f16MantissaBits = 10;
  constexpr int f16Bias = 15;
  unsigned shift = f16MantissaBits - format.mantissaBits;
  uint64_t magnitudeMask = format.signBit() - 1;

  // Sign extension leaves the sign in place, and copies of it to mask out.
  Value bits = b.convert<arith::ExtSIOp>(b.intType(16), code);
  bits = b.op<arith::ShLIOp>(bits, shift);
  if (shift + format.width != 16)
    bits = b.op<arith::AndIOp>(bits, 0x8000 | magnitudeMask << shift);
  if (format.overflowIsNaN) {
    // This NaN's f16 is a number.
    Value isNaN =
        b.compare(CmpIPredicate::eq, b.op<arith::AndIOp>(code, magnitudeMask),
                  format.nanCode);
    bits = b.select(isNaN, b.constantLike(bits, 0x7E00), bits);
  }
  Type f16 = b.shaped(Float16Type::get(code.getContext()));
  Value result =
      b.convert<arith::ExtFOp>(b.f32(), b.convert<arith::BitcastOp>(f16, bits));
  if (format.bias == f16Bias)
    return result;
  uint32_t rebias = (kF32Bias + f16Bias - format.bias) << kF32MantissaBits;
  return b.op<arith::MulFOp>(result, b.f32FromBits(rebias));
}

/// The byte is f32's exponent, but for its two ends: 0 stands for 2^-127, an
/// f32 subnormal, and 255 for NaN. In both the top mantissa bit makes the
/// difference.
static Value extendE8M0(CastBuilder &b, Value code) {
  Value bits = b.convert<arith::ExtUIOp>(b.intType(32), code);
  Value isEnd = b.compare(CmpIPredicate::ule, b.op<arith::AddIOp>(code, 1), 1);
  Value shifted = b.op<arith::ShLIOp>(bits, kF32MantissaBits);
  Value withTop = b.op<arith::OrIOp>(shifted, 0x00400000);
  return b.f32Of(b.select(isEnd, withTop, shifted));
}

/// Rounds f64 to f32 "to odd": an inexact result gets an odd last bit. With at
/// least two bits to spare, rounding that once more to nearest gives what one
/// rounding of the f64 would have given.
static Value roundF64ToOdd(CastBuilder &b, Value value) {
  Value nearest = b.convert<arith::TruncFOp>(b.f32(), value);
  Value back = b.convert<arith::ExtFOp>(value.getType(), nearest);
  Value bits = b.bitsOf(nearest);
  // An ordered comparison, to leave NaN as it is.
  Value isInexact = b.compare(CmpFPredicate::ONE, back, value);
  Value lastBit = b.op<arith::AndIOp>(bits, 1);
  Value isEven = b.compare(CmpIPredicate::eq, lastBit, 0);
  // Compare magnitudes by integers: below the sign bit, f64 orders like i64.
  auto magnitude = [&](Value f64Value) {
    Value wide = b.convert<arith::BitcastOp>(b.intType(64), f64Value);
    return b.op<arith::AndIOp>(wide, (uint64_t(1) << 63) - 1);
  };
  Value wentUp =
      b.compare(CmpIPredicate::ugt, magnitude(back), magnitude(value));
  Value step = b.select(wentUp, b.constantLike(bits, ~uint64_t(0)),
                        b.constantLike(bits, 1));
  Value odd = b.op<arith::AddIOp>(bits, step);
  Value takeOdd = b.op<arith::AndIOp>(isInexact, isEven);
  return b.f32Of(b.select(takeOdd, odd, bits));
}

/// Extends to f32, or from f64 narrows to an f32 that rounds like it.
static Value toF32(CastBuilder &b, Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isF32())
    return value;
  if (element.isF64())
    return roundF64ToOdd(b, value);
  if (element.isF16())
    return b.convert<arith::ExtFOp>(b.f32(), value);
  Value code = b.convert<arith::BitcastOp>(
      b.intType(element.getIntOrFloatBitWidth()), value);
  if (element.isBF16())
    return b.f32Of(b.op<arith::ShLIOp>(
        b.convert<arith::ExtUIOp>(b.intType(32), code), 16));
  if (isa<Float8E8M0FNUType>(element))
    return extendE8M0(b, code);
  return extendSmallFormat(b, code, *getSmallFormat(element));
}

//===----------------------------------------------------------------------===//
// Down from f32: one rounding to nearest even
//===----------------------------------------------------------------------===//

/// One f32 addition rounds normal and subnormal results alike. For |x| in
/// [2^e, 2^(e+1)) it adds 2^(e+k), next to which the last place of an f32 is
/// the last place q of the result, k being the number of mantissa bits to drop.
/// Below the smallest normal result e stays at that one's exponent. The sum's
/// bits are ((e+k+127) << 23) + q and the code is q + ((e+bias-1) << m), hence
/// the sum's low bits plus the sum shifted right by k, but for a constant,
/// which the added number brings along in its own low bits.
static Value truncateToSmallFormat(CastBuilder &b, Value value,
                                   const SmallFormat &format, bool saturates) {
  unsigned drop = format.numDroppedBits();
  Value bits = b.bitsOf(value);
  Value magnitude = b.op<arith::AndIOp>(bits, kF32SignBit - 1);
  // One value stands for all beyond it. Where those become NaN, past the
  // largest value and half a step, the last select is all there is to do.
  Value capped = magnitude;
  uint32_t lastNonNaN = kF32InfBits;
  if (format.overflowIsNaN && !saturates)
    lastNonNaN = format.bitsOfCode(format.largestCode()) + (1u << (drop - 1));
  else
    capped = b.op<arith::MinUIOp>(
        magnitude, format.bitsOfCode(saturates ? format.largestCode()
                                               : format.overflowCode));

  // Even, so that ties still go to the even q, and modulo 2^16, which leaves
  // nothing between the code and the garbage that the truncation drops.
  uint32_t correction = (uint32_t(format.bias - 1 - int(drop) - kF32Bias)
                         << format.mantissaBits) &
                        0xFFFF;
  uint32_t minNormal = uint32_t(kF32Bias + format.minExponent())
                       << kF32MantissaBits;
  Value exponent = b.op<arith::AndIOp>(capped, kF32InfBits);
  exponent = b.op<arith::MaxUIOp>(exponent, minNormal);
  Value addend =
      b.op<arith::AddIOp>(exponent, (drop << kF32MantissaBits) + correction);
  Value sum = b.bitsOf(b.op<arith::AddFOp>(b.f32Of(capped), b.f32Of(addend)));
  Value code = b.op<arith::AddIOp>(b.op<arith::ShRUIOp>(sum, drop), sum);

  Value sign = b.op<arith::AndIOp>(
      b.op<arith::ShRUIOp>(bits, 32 - format.width), format.signBit());
  Value isNaN = b.compare(CmpIPredicate::ugt, magnitude, lastNonNaN);
  code = b.select(isNaN, b.constantLike(code, format.nanCode),
                  b.op<arith::OrIOp>(code, sign));

  // By way of i8, so that a caller that widens a 4-bit code to a byte again
  // leaves no sub-byte vector behind.
  code = b.convert<arith::TruncIOp>(b.intType(8), code);
  return format.width == 8
             ? code
             : b.convert<arith::TruncIOp>(b.intType(format.width), code);
}

/// Rounds to the nearest power of two. With no mantissa bits every code counts
/// as odd, so a tie goes up, as in APFloat. Zero becomes 2^-127, the nearest
/// value; anything negative, and all from 1.5 * 2^127 up, becomes NaN.
static Value truncateToE8M0(CastBuilder &b, Value value) {
  Value bits = b.bitsOf(value);
  bits = b.select(b.compare(CmpIPredicate::eq, bits, kF32SignBit),
                  b.constantLike(bits, 0), bits);
  // Exponent and top mantissa bit, halved upwards. The sign comes out as bit 8
  // and so is beyond every code, as are NaNs with their top bit set.
  Value code = b.op<arith::ShRUIOp>(
      b.op<arith::AddIOp>(b.op<arith::ShRUIOp>(bits, kF32MantissaBits - 1), 1),
      1);
  // f32 subnormals below the middle of 2^-127 and 2^-126.
  code = b.select(b.compare(CmpIPredicate::ult, bits, 0x00600000),
                  b.constantLike(code, 0), code);
  code = b.op<arith::MinUIOp>(code, 0xFF);
  return b.convert<arith::TruncIOp>(b.intType(8), code);
}

/// Adds half of the last kept place less one, plus the last kept bit: the carry
/// then rounds to nearest even, up to Inf. The sign takes no harm.
static Value truncateToBF16(CastBuilder &b, Value value) {
  Value bits = b.bitsOf(value);
  Value lastKept = b.op<arith::AndIOp>(b.op<arith::ShRUIOp>(bits, 16), 1);
  Value rounded =
      b.op<arith::AddIOp>(b.op<arith::AddIOp>(bits, 0x7FFF), lastKept);
  Value code = b.convert<arith::TruncIOp>(b.intType(16),
                                          b.op<arith::ShRUIOp>(rounded, 16));
  Value isNaN = b.compare(CmpFPredicate::UNO, value, value);
  return b.select(isNaN, b.constantLike(code, 0x7FC0), code);
}

/// If `value` is x clamped to the format's largest magnitude, NaN passing, the
/// x; the truncation saturates at less cost.
static Value getClampSource(Value value, const SmallFormat &format) {
  APFloat high(APFloat::IEEEsingle(),
               APInt(32, format.bitsOfCode(format.largestCode())));
  auto isBound = [](Value candidate, const APFloat &bound) {
    APFloat constant(0.0f);
    return matchPattern(candidate, m_ConstantFloat(&constant)) &&
           constant.bitwiseIsEqual(bound);
  };
  // `value beyond bound ? bound : value`
  auto peelSelect = [&](Value clamped, CmpFPredicate beyond,
                        const APFloat &bound) -> Value {
    auto select = clamped.getDefiningOp<arith::SelectOp>();
    if (!select || !isBound(select.getTrueValue(), bound))
      return nullptr;
    auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
    if (!compare || compare.getPredicate() != beyond ||
        compare.getLhs() != select.getFalseValue() ||
        !isBound(compare.getRhs(), bound))
      return nullptr;
    return select.getFalseValue();
  };
  Value below = peelSelect(value, CmpFPredicate::OLT, -high);
  return below ? peelSelect(below, CmpFPredicate::OGT, high) : Value();
}

/// The target of the cast from an f32 that is exact or rounded to odd. Only
/// an f64 target is wider.
static Value fromF32(CastBuilder &b, Type type, Value value) {
  Type element = getElementTypeOrSelf(type);
  if (element.isF32())
    return value;
  if (element.isF64())
    return b.convert<arith::ExtFOp>(type, value);
  if (element.isF16())
    return b.convert<arith::TruncFOp>(type, value);
  Value code;
  if (element.isBF16()) {
    code = truncateToBF16(b, value);
  } else if (isa<Float8E8M0FNUType>(element)) {
    code = truncateToE8M0(b, value);
  } else {
    SmallFormat format = *getSmallFormat(element);
    Value unclamped = getClampSource(value, format);
    code = truncateToSmallFormat(b, unclamped ? unclamped : value, format,
                                 /*saturates=*/unclamped != nullptr);
  }
  return b.convert<arith::BitcastOp>(type, code);
}

//===----------------------------------------------------------------------===//
// Patterns and pass
//===----------------------------------------------------------------------===//

static LogicalResult expandCast(PatternRewriter &rewriter, Operation *op) {
  Value source = op->getOperand(0);
  Type type = op->getResult(0).getType();
  if (!isa<FloatType, VectorType>(type))
    return rewriter.notifyMatchFailure(op, "expected a scalar or a vector");
  Type from = getElementTypeOrSelf(source), to = getElementTypeOrSelf(type);
  if (!isKnown(from) || !isKnown(to))
    return rewriter.notifyMatchFailure(op, "expected f64 or elements of a "
                                           "format of Formats.def");
  if (isSupportedByLLVM(from) && isSupportedByLLVM(to))
    return rewriter.notifyMatchFailure(op, "expected a cast LLVM lacks");

  CastBuilder b(rewriter, op->getLoc(), type);
  Value value = toF32(b, source);
  // What an extension makes needs no rounding: bf16 is the upper half.
  if (to.isBF16() && isa<arith::ExtFOp>(op)) {
    Value upper = b.op<arith::ShRUIOp>(b.bitsOf(value), 16);
    value = b.convert<arith::BitcastOp>(
        type, b.convert<arith::TruncIOp>(b.intType(16), upper));
  } else {
    value = fromF32(b, type, value);
  }
  rewriter.replaceOp(op, value);
  return success();
}

namespace {
struct ExpandTruncF : OpRewritePattern<arith::TruncFOp> {
  using Base::Base;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    auto nearest = arith::RoundingMode::to_nearest_even;
    if (op.getRoundingmode().value_or(nearest) != nearest)
      return rewriter.notifyMatchFailure(op, "expected to_nearest_even");
    return expandCast(rewriter, op);
  }
};

struct ExpandExtF : OpRewritePattern<arith::ExtFOp> {
  using Base::Base;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    return expandCast(rewriter, op);
  }
};

/// Every replacement is one expanded cast: the walk neither folds nor visits
/// what it made.
struct ReplacementCounter : RewriterBase::Listener {
  void notifyOperationReplaced(Operation *, ValueRange) override { ++count; }
  uint64_t count = 0;
};

struct ExpandFloatCastsPass
    : fp8::impl::ExpandFloatCastsPassBase<ExpandFloatCastsPass> {
  using Base::Base;

  void runOnOperation() override;
};
} // namespace

void fp8::populateExpandFloatCastsPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandTruncF, ExpandExtF>(patterns.getContext());
}

void ExpandFloatCastsPass::runOnOperation() {
  RewritePatternSet patterns(&getContext());
  fp8::populateExpandFloatCastsPatterns(patterns);
  ReplacementCounter counter;
  walkAndApplyPatterns(getOperation(), std::move(patterns), &counter);
  numExpanded += counter.count;
}
