//===- Scales.cpp - amax and compute_scale --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "FP8ToLinalg.h"
#include "fp8/IR/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
/// says. The result does not depend on the order, and it vectorizes.
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
          ScalarBuilder b(loc, builder);
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

/// The tensor's own factors, of one element; null where there are none.
struct TensorScale {
  Value scale, scaleInv;
  explicit operator bool() const { return static_cast<bool>(scale); }
};

TensorScale buildTensorScale(OpBuilder &builder, Location loc, Value amax,
                             FloatType format) {
  auto type = cast<RankedTensorType>(amax.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  Value out = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                      builder.getF32Type());
  auto generic = linalg::GenericOp::create(
      builder, loc, TypeRange{type, type}, amax, ValueRange{out, out},
      ArrayRef{identity, identity, identity},
      getIterators(SmallVector<bool>(type.getRank(), false)),
      [&](OpBuilder &inner, Location loc, ValueRange args) {
        ScalarBuilder b(loc, inner);
        auto [scale, scaleInv] = buildTensorScales(b, args[0], format);
        linalg::YieldOp::create(b, ValueRange{scale, scaleInv});
      });
  return {generic.getResult(0), generic.getResult(1)};
}

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
    ScaleRuleAttrInterface rule = op.getRule();

    SmallVector<Value> inputs{amax};
    SmallVector<AffineMap> maps{identity};
    TensorScale tensorScale;
    if (op.getTensorAmax()) {
      tensorScale =
          buildTensorScale(rewriter, loc, adaptor.getTensorAmax(), format);
      for (Value value : {tensorScale.scale, tensorScale.scaleInv}) {
        inputs.push_back(value);
        maps.push_back(single);
      }
    }

    Value scaleOut = empty(sizes, rewriter.getF32Type());
    Value scaleInvOut = empty(sizes, op.getScaleType());
    maps.append(2, identity);
    auto scales = linalg::GenericOp::create(
        rewriter, loc, TypeRange{scaleOut.getType(), scaleInvOut.getType()},
        inputs, ValueRange{scaleOut, scaleInvOut}, maps, iterators,
        [&](OpBuilder &builder, Location loc, ValueRange args) {
          ScalarBuilder b(loc, builder);
          Value scale, scaleInv;
          if (tensorScale) {
            std::tie(scale, scaleInv) = buildBlockScales(
                b, args[0], args[1], format,
                [&](Value factor) -> std::pair<Value, Value> {
                  Value code =
                      arith::TruncFOp::create(b, op.getScaleType(), factor);
                  return {code, arith::ExtFOp::create(b, b.getF32Type(), code)};
                });
          } else {
            std::tie(scale, scaleInv) =
                buildScales(b, rule, args[0], format, op.getScaleType());
          }
          linalg::YieldOp::create(b, ValueRange{scale, scaleInv});
        });
    SmallVector<Value> results{scales.getResult(0), scales.getResult(1)};
    if (tensorScale)
      results.push_back(tensorScale.scaleInv);
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
