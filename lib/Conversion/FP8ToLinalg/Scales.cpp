//===- Scales.cpp - amax and compute_scale --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "FP8ToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fp8;

static SmallVector<utils::IteratorType>
getIterators(ArrayRef<bool> isReduction) {
  return llvm::map_to_vector(isReduction, [](bool reduction) {
    return reduction ? utils::IteratorType::reduction
                     : utils::IteratorType::parallel;
  });
}

namespace {

//===----------------------------------------------------------------------===//
// amax
//===----------------------------------------------------------------------===//

/// The maximum is taken on the bits of |x| as integers: for floats of one sign
/// the order is the same, NaN is above Inf and is dropped or wins as the op
/// says, the result does not depend on the order, and it vectorises.
struct ConvertAmax : OpConversionPattern<AmaxOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(AmaxOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type i32 = rewriter.getI32Type();
    BlockedNest nest(rewriter, loc, adaptor.getSource(), op.getBlock());
    Value zero = arith::ConstantIntOp::create(rewriter, loc, i32, 0);
    Value init =
        linalg::FillOp::create(rewriter, loc, zero, nest.createEmptyGrid(i32))
            .getResult(0);
    bool propagate = op.getPropagateNan();
    auto bits = linalg::GenericOp::create(
        rewriter, loc, init.getType(), nest.split(adaptor.getSource()), init,
        ArrayRef{nest.getElementMap(), nest.getGridMap()},
        getIterators(nest.getWithinBlock()),
        [&](OpBuilder &builder, Location loc, ValueRange args) {
          ImplicitLocOpBuilder b(loc, builder);
          auto constant = [&](int64_t value) -> Value {
            return arith::ConstantIntOp::create(b, i32, value);
          };
          Value x = arith::BitcastOp::create(b, i32, toF32(b, loc, args[0]));
          Value magnitude = arith::AndIOp::create(b, x, constant(0x7fffffff));
          if (!propagate) {
            Value isNumber = arith::CmpIOp::create(
                b, arith::CmpIPredicate::ule, magnitude, constant(0x7f800000));
            magnitude =
                arith::SelectOp::create(b, isNumber, magnitude, constant(0));
          }
          Value max = arith::MaxUIOp::create(b, args[1], magnitude);
          linalg::YieldOp::create(b, max);
        });
    // Back to f32, element by element.
    auto type = cast<RankedTensorType>(init.getType());
    AffineMap identity = rewriter.getMultiDimIdentityMap(type.getRank());
    Value empty = nest.createEmptyGrid(rewriter.getF32Type());
    auto amax = linalg::GenericOp::create(
        rewriter, loc, empty.getType(), bits.getResult(0), empty,
        ArrayRef{identity, identity},
        getIterators(SmallVector<bool>(type.getRank(), false)),
        [](OpBuilder &b, Location loc, ValueRange args) {
          Value value =
              arith::BitcastOp::create(b, loc, b.getF32Type(), args[0]);
          linalg::YieldOp::create(b, loc, value);
        });
    rewriter.replaceOp(op, amax);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// compute_scale
//===----------------------------------------------------------------------===//

/// Emits scalar f32 and i32 arithmetic with little ceremony.
struct ScaleBuilder : ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value f32(float value) { return constantF32(*this, getLoc(), value); }
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(*this, getI32Type(), value);
  }
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
  Value div(Value a, Value b) { return arith::DivFOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(*this, a, b); }
  Value isNaN(Value x) { return cmpf(arith::CmpFPredicate::UNO, x, x); }
  /// Finite and above zero; false for NaN.
  Value isPositiveFinite(Value x) {
    Value positive = cmpf(arith::CmpFPredicate::OGT, x, f32(0.0f));
    Value finite = cmpf(arith::CmpFPredicate::OLE, x,
                        f32(std::numeric_limits<float>::max()));
    return arith::AndIOp::create(*this, positive, finite);
  }
  /// The largest power of two not above `x`; NaN stays NaN.
  Value floorToPow2(Value x) {
    Value cleared =
        fromBits(arith::AndIOp::create(*this, bits(x), i32(0xff800000)));
    return select(isNaN(x), x, cleared);
  }

  //===--------------------------------------------------------------------===//
  // f32 scales
  //===--------------------------------------------------------------------===//

  /// Transformer Engine's current scaling: recipe_common.cuh, numerics of 5.2.
  Value scaleTE(Value amax, float maxFinite, ScaleRule rule) {
    if (rule.epsilon.value > 0.0f) {
      Value epsilon = f32(rule.epsilon.value);
      amax =
          select(cmpf(arith::CmpFPredicate::OLT, amax, epsilon), epsilon, amax);
    }
    Value scale = div(f32(maxFinite), amax);
    Value inf = f32(std::numeric_limits<float>::infinity());
    scale = select(cmpf(arith::CmpFPredicate::OEQ, scale, inf),
                   f32(rule.overflow.value), scale);
    if (rule.pow2)
      scale = floorToPow2(scale);
    return select(isPositiveFinite(amax), scale, f32(1.0f));
  }

  /// torchao's float8_utils.py: an f64 division and no rule for Inf and NaN.
  Value scaleTorchAO(Value amax, float maxFinite, ScaleRule rule) {
    auto f64 = [&](double value) -> Value {
      return arith::ConstantOp::create(*this, getF64FloatAttr(value));
    };
    Value wide = arith::ExtFOp::create(*this, getF64Type(), amax);
    double epsilon = rule.epsilon.value > 0.0f ? rule.epsilon.value : 1e-12;
    Value small = cmpf(arith::CmpFPredicate::OLT, wide, f64(epsilon));
    wide = select(small, f64(epsilon), wide);
    Value scale =
        arith::TruncFOp::create(*this, getF32Type(), div(f64(maxFinite), wide));
    return rule.pow2 ? floorToPow2(scale) : scale;
  }

  //===--------------------------------------------------------------------===//
  // E8M0 scales
  //===--------------------------------------------------------------------===//

  /// The E8M0 byte of `amax` as i32, for elements of `format`.
  Value e8m0Byte(Value amax, FloatType format, ScaleRule rule) {
    float maxFinite = getMaxFinite(format);
    int64_t emax = llvm::ilogb(llvm::APFloat(maxFinite));
    int64_t mantissaBits = format.getFPMantissaWidth() - 1;
    Value x = amax;
    if (rule.mode == MXMode::RCeil)
      x = mul(amax, f32(1.0f / maxFinite));
    Value b = bits(x);
    if (rule.mode == MXMode::Even)
      b = arith::AddIOp::create(*this, b,
                                i32(int64_t(1) << (23 - mantissaBits - 1)));
    Value exponent = arith::ShRUIOp::create(*this, b, i32(23));
    Value mantissa = arith::AndIOp::create(*this, b, i32(0x7fffff));
    Value byte = exponent;
    if (rule.mode == MXMode::Ceil || rule.mode == MXMode::RCeil) {
      Value above = cmpi(arith::CmpIPredicate::ne, mantissa, i32(0));
      // In RCEIL a subnormal rounds up from 2^-127, which is half of the
      // smallest normal number, not from zero.
      if (rule.mode == MXMode::RCeil)
        above = select(cmpi(arith::CmpIPredicate::eq, exponent, i32(0)),
                       cmpi(arith::CmpIPredicate::ugt, mantissa, i32(0x400000)),
                       above);
      byte = arith::AddIOp::create(
          *this, byte, arith::ExtUIOp::create(*this, getI32Type(), above));
    }
    if (rule.mode != MXMode::RCeil) {
      byte = arith::SubIOp::create(*this, byte, i32(emax));
      byte = arith::MaxSIOp::create(*this, byte, i32(0));
    }
    byte = arith::MinSIOp::create(*this, byte, i32(0xfe));
    // Non-finite amaxes, on the bits before any rounding.
    Value original = bits(amax);
    Value isInf = cmpi(arith::CmpIPredicate::eq, original, i32(0x7f800000));
    Value infByte = i32(rule.nonfinite == NonFinite::NaN ? 0xff : 0xfe);
    byte = select(isInf, infByte, byte);
    return select(isNaN(amax), i32(0xff), byte);
  }

  /// 1 / 2^(byte - 127), exact.
  Value e8m0Reciprocal(Value byte) {
    Value shifted = arith::ShLIOp::create(
        *this, arith::SubIOp::create(*this, i32(254), byte), i32(23));
    // 2^-127 is subnormal, 255 is NaN.
    shifted = select(cmpi(arith::CmpIPredicate::eq, byte, i32(254)),
                     i32(0x00400000), shifted);
    shifted = select(cmpi(arith::CmpIPredicate::eq, byte, i32(255)),
                     i32(0x7fc00000), shifted);
    return fromBits(shifted);
  }
};

struct ConvertComputeScale : OpConversionPattern<ComputeScaleOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(ComputeScaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value amax = adaptor.getAmax();
    auto type = cast<RankedTensorType>(amax.getType());
    int64_t rank = type.getRank();
    AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
    AffineMap single = AffineMap::get(
        rank, 0,
        SmallVector<AffineExpr>(rank, rewriter.getAffineConstantExpr(0)),
        rewriter.getContext());
    auto iterators = getIterators(SmallVector<bool>(rank, false));
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, amax);
    auto empty = [&](ArrayRef<OpFoldResult> shape, Type elementType) -> Value {
      return tensor::EmptyOp::create(rewriter, loc, shape, elementType);
    };
    auto format = cast<FloatType>(op.getFormat());
    ScaleRule rule = op.getRule().getRule();
    float maxFinite = getMaxFinite(format);

    SmallVector<Value> inputs{amax};
    SmallVector<AffineMap> maps{identity};
    // The tensor's own factor first: the blocks' depend on it.
    Value tensorScaleInv;
    if (op.getTensorAmax()) {
      SmallVector<OpFoldResult> ones(rank, rewriter.getIndexAttr(1));
      Value out = empty(ones, rewriter.getF32Type());
      tensorScaleInv =
          linalg::GenericOp::create(
              rewriter, loc, out.getType(), adaptor.getTensorAmax(), out,
              ArrayRef{identity, identity}, iterators,
              [&](OpBuilder &builder, Location loc, ValueRange args) {
                ScaleBuilder b(loc, builder);
                Value factor = b.div(args[0], b.f32(448.0f * maxFinite));
                factor =
                    b.select(b.isPositiveFinite(args[0]), factor, b.f32(1.0f));
                // An amax so small that its factor underflows to zero.
                factor =
                    b.select(b.isPositiveFinite(factor), factor, b.f32(1.0f));
                linalg::YieldOp::create(b, factor);
              })
              .getResult(0);
      inputs.push_back(tensorScaleInv);
      maps.push_back(single);
    }

    Value scaleOut = empty(sizes, rewriter.getF32Type());
    Value scaleInvOut = empty(sizes, op.getScaleType());
    maps.append(2, identity);
    auto scales = linalg::GenericOp::create(
        rewriter, loc, TypeRange{scaleOut.getType(), scaleInvOut.getType()},
        inputs, ValueRange{scaleOut, scaleInvOut}, maps, iterators,
        [&](OpBuilder &builder, Location loc, ValueRange args) {
          ScaleBuilder b(loc, builder);
          Value scale, scaleInv;
          if (isa<Float8E8M0FNUType>(op.getScaleType())) {
            Value byte = b.e8m0Byte(args[0], format, rule);
            scale = b.e8m0Reciprocal(byte);
            Value code = arith::TruncIOp::create(b, b.getI8Type(), byte);
            scaleInv = arith::BitcastOp::create(b, op.getScaleType(), code);
          } else if (tensorScaleInv) {
            Value factor = b.div(b.div(args[0], b.f32(maxFinite)), args[1]);
            factor = clamp(b, loc, factor, 448.0f);
            scaleInv = arith::TruncFOp::create(b, op.getScaleType(), factor);
            Value decoded = arith::ExtFOp::create(b, b.getF32Type(), scaleInv);
            Value product = b.mul(decoded, args[1]);
            Value isZero =
                b.cmpf(arith::CmpFPredicate::OEQ, product, b.f32(0.0f));
            // An infinite scale would make NaN of the zeros in a block.
            Value max = b.f32(std::numeric_limits<float>::max());
            scale = b.div(b.f32(1.0f), product);
            scale = b.select(b.cmpf(arith::CmpFPredicate::OGT, scale, max), max,
                             scale);
            scale = b.select(isZero, b.f32(0.0f), scale);
          } else {
            scale = rule.style == ScaleStyle::TorchAO
                        ? b.scaleTorchAO(args[0], maxFinite, rule)
                        : b.scaleTE(args[0], maxFinite, rule);
            scaleInv = b.div(b.f32(1.0f), scale);
          }
          linalg::YieldOp::create(b, ValueRange{scale, scaleInv});
        });
    SmallVector<Value> results{scales.getResult(0), scales.getResult(1)};
    if (tensorScaleInv)
      results.push_back(tensorScaleInv);
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void fp8::populateScalePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<ConvertAmax, ConvertComputeScale>(converter,
                                                 patterns.getContext());
}
