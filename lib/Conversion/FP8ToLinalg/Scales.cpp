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
                ScalarBuilder b(loc, builder);
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
          ScalarBuilder b(loc, builder);
          Value scale, scaleInv;
          if (tensorScaleInv) {
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
            std::tie(scale, scaleInv) =
                buildScales(b, rule, args[0], format, op.getScaleType());
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
