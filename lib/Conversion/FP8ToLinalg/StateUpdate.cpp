//===- StateUpdate.cpp - update_scales ------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules are those of the runtime's ScalingStateUpdate.cpp, see
// docs/Recipes/Delayed.md; both are tested against one reference. Amaxes are
// compared by the bits of their magnitudes, where NaN is above Inf.
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Emits the arithmetic of one slot.
struct SlotBuilder : ImplicitLocOpBuilder {
  SlotBuilder(Location loc, OpBuilder &builder, DelayedAttr recipe)
      : ImplicitLocOpBuilder(loc, builder), recipe(recipe) {}

  static constexpr int64_t kInfBits = 0x7f800000;

  Value f32(float value) { return constantF32(*this, getLoc(), value); }
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(*this, getI32Type(), value);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(*this, value);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(*this, condition, a, b);
  }
  Value cmpi(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(*this, predicate, a, b);
  }
  Value div(Value a, Value b) { return arith::DivFOp::create(*this, a, b); }
  Value fromBits(Value x) {
    return arith::BitcastOp::create(*this, getF32Type(), x);
  }
  Value bits(Value x) {
    return arith::BitcastOp::create(*this, getI32Type(), x);
  }
  Value magnitude(Value x) {
    return arith::AndIOp::create(*this, bits(x), i32(0x7fffffff));
  }

  /// What the bits of a magnitude count in a maximum.
  Value key(Value magnitude) {
    if (recipe.getCompat() != DelayedCompat::TEFused)
      return magnitude;
    Value isNaN = cmpi(arith::CmpIPredicate::ugt, magnitude, i32(kInfBits));
    return select(isNaN, i32(0), magnitude);
  }

  /// The largest power of two that is not above `x`, subnormal ones included.
  Value floorToPow2(Value x) {
    Value isSubnormal =
        cmpi(arith::CmpIPredicate::ult, bits(x), i32(0x00800000));
    Value factor = select(isSubnormal, f32(0x1p64f), f32(1.0f));
    Value normal = arith::MulFOp::create(*this, x, factor);
    Value power =
        fromBits(arith::AndIOp::create(*this, bits(normal), i32(kInfBits)));
    return div(power, factor);
  }

  /// The new scale for `window`, the bits of the amax that counts.
  Value newScale(Value window, Value fp8Max, Value oldScale) {
    float power = std::ldexp(1.0f, recipe.getMargin());
    Value amax = fromBits(window);
    bool isFlax = recipe.getCompat() == DelayedCompat::Flax;
    Value scale = recipe.getCompat() == DelayedCompat::TEFused
                      ? div(div(fp8Max, f32(power)), amax)
                      : div(div(fp8Max, amax), f32(power));
    if (!isFlax) {
      Value isInf = cmpi(arith::CmpIPredicate::eq, bits(scale), i32(kInfBits));
      scale = select(isInf, f32(std::numeric_limits<float>::max()), scale);
    }
    if (recipe.getPow2())
      scale = floorToPow2(scale);
    // Flax stores the inverse, so that a kept scale goes through it.
    Value kept = isFlax ? div(f32(1.0f), div(f32(1.0f), oldScale)) : oldScale;
    Value isUsable = arith::AndIOp::create(
        *this, cmpi(arith::CmpIPredicate::ne, window, i32(0)),
        cmpi(arith::CmpIPredicate::ult, window, i32(kInfBits)));
    return select(isUsable, scale, kept);
  }

  DelayedAttr recipe;
};

struct ConvertUpdateScales : OpConversionPattern<UpdateScalesOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(UpdateScalesOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value history = adaptor.getAmaxHistory();
    Value newHistory = buildHistory(rewriter, op, adaptor);
    bool isFlax = getRecipe(op).getCompat() == DelayedCompat::Flax;
    // TE's window has the amax that the update drops, Flax's has not.
    Value past = buildMax(rewriter, op, isFlax ? newHistory : history,
                          /*firstRow=*/isFlax ? 0 : 1);
    rewriter.replaceOp(op,
                       {buildScale(rewriter, op, adaptor, past), newHistory});
    return success();
  }

  static DelayedAttr getRecipe(UpdateScalesOp op) {
    return cast<DelayedAttr>(op.getTable().getRecipe());
  }

  /// The histories after the amaxes of the step came in.
  static Value buildHistory(OpBuilder &builder, UpdateScalesOp op,
                            OpAdaptor adaptor) {
    DelayedAttr recipe = getRecipe(op);
    int64_t length = recipe.getAmaxHistoryLen();
    Location loc = op.getLoc();
    Value empty = tensor::EmptyOp::create(
        builder, loc, op.getNewAmaxHistory().getType().getShape(),
        builder.getF32Type());
    AffineExpr column = builder.getAffineDimExpr(1);
    AffineMap amaxMap = AffineMap::get(2, 0, column);
    AffineMap identity = builder.getMultiDimIdentityMap(2);
    SmallVector<utils::IteratorType> iterators(2,
                                               utils::IteratorType::parallel);
    return linalg::GenericOp::create(
               builder, loc, empty.getType(), adaptor.getAmax(), empty,
               ArrayRef{amaxMap, identity}, iterators,
               [&](OpBuilder &inner, Location loc, ValueRange args) {
                 SlotBuilder b(loc, inner, recipe);
                 Value row = linalg::IndexOp::create(b, 0);
                 Value slot = linalg::IndexOp::create(b, 1);
                 Value present = b.magnitude(args[0]);
                 Value last = b.index(length - 1);
                 Value isFirst =
                     b.cmpi(arith::CmpIPredicate::eq, row, b.index(0));
                 Value isLast = b.cmpi(arith::CmpIPredicate::eq, row, last);
                 Value next = arith::AddIOp::create(b, row, b.index(1));
                 bool isFlax = recipe.getCompat() == DelayedCompat::Flax;
                 Value source =
                     b.select(isLast, isFlax ? b.index(0) : last, next);
                 Value isKept;
                 if (recipe.getCompat() == DelayedCompat::TEFused) {
                   isKept = b.cmpi(arith::CmpIPredicate::eq, present, b.i32(0));
                   source = b.select(isKept, row, source);
                 }
                 Value moved = tensor::ExtractOp::create(
                     b, adaptor.getAmaxHistory(), ValueRange{source, slot});
                 moved = b.magnitude(moved);
                 Value value;
                 if (isFlax) {
                   value = b.select(isFirst, present, moved);
                 } else {
                   Value newest =
                       isKept ? b.select(isKept, moved, present) : present;
                   value = b.select(isLast, newest, moved);
                   value = b.select(isFirst, b.i32(0), value);
                 }
                 linalg::YieldOp::create(b, b.fromBits(value));
               })
        .getResult(0);
  }

  /// The largest amax of every column, from row `firstRow` on, as bits.
  static Value buildMax(OpBuilder &builder, UpdateScalesOp op, Value history,
                        int64_t firstRow) {
    Location loc = op.getLoc();
    int64_t slots = op.getTable().getNumSlots();
    DelayedAttr recipe = getRecipe(op);
    Type i32 = builder.getI32Type();
    Value zero = arith::ConstantIntOp::create(builder, loc, i32, 0);
    Value empty = tensor::EmptyOp::create(builder, loc, slots, i32);
    Value init = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
    int64_t rows = recipe.getAmaxHistoryLen() - firstRow;
    if (rows == 0)
      return init;
    auto at = [&](int64_t value) -> OpFoldResult {
      return builder.getIndexAttr(value);
    };
    if (firstRow != 0)
      history = tensor::ExtractSliceOp::create(
          builder, loc, history, {at(firstRow), at(0)}, {at(rows), at(slots)},
          {at(1), at(1)});
    AffineMap identity = builder.getMultiDimIdentityMap(2);
    AffineMap column = AffineMap::get(2, 0, builder.getAffineDimExpr(1));
    utils::IteratorType iterators[] = {utils::IteratorType::reduction,
                                       utils::IteratorType::parallel};
    return linalg::GenericOp::create(
               builder, loc, init.getType(), history, init,
               ArrayRef{identity, column}, iterators,
               [&](OpBuilder &inner, Location loc, ValueRange args) {
                 SlotBuilder b(loc, inner, recipe);
                 Value key = b.key(b.magnitude(args[0]));
                 Value max = arith::MaxUIOp::create(b, args[1], key);
                 linalg::YieldOp::create(b, max);
               })
        .getResult(0);
  }

  static Value buildScale(OpBuilder &builder, UpdateScalesOp op,
                          OpAdaptor adaptor, Value past) {
    Location loc = op.getLoc();
    DelayedAttr recipe = getRecipe(op);
    SmallVector<float> limits;
    for (SlotAttr slot : op.getTable().getSlotRange())
      limits.push_back(getMaxFinite(slot.getFormat()));
    RankedTensorType type = op.getScale().getType();
    Value fp8Max = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef(limits)));
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                          type.getElementType());
    AffineMap identity = builder.getMultiDimIdentityMap(1);
    SmallVector<AffineMap> maps(5, identity);
    return linalg::GenericOp::create(
               builder, loc, type,
               ValueRange{adaptor.getScale(), adaptor.getAmax(), past, fp8Max},
               empty, maps, utils::IteratorType::parallel,
               [&](OpBuilder &inner, Location loc, ValueRange args) {
                 SlotBuilder b(loc, inner, recipe);
                 Value present = b.magnitude(args[1]);
                 Value window = args[2];
                 if (recipe.getCompat() != DelayedCompat::Flax)
                   window = arith::MaxUIOp::create(b, window, b.key(present));
                 // With amax 0 te_fused does nothing at all.
                 if (recipe.getCompat() == DelayedCompat::TEFused) {
                   Value isUnused =
                       b.cmpi(arith::CmpIPredicate::eq, present, b.i32(0));
                   window = b.select(isUnused, b.i32(0), window);
                 }
                 if (recipe.getAmaxComputeAlgo() == AmaxComputeAlgo::MostRecent)
                   window = present;
                 linalg::YieldOp::create(b,
                                         b.newScale(window, args[3], args[0]));
               })
        .getResult(0);
  }
};

} // namespace

void fp8::populateStateUpdatePatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<ConvertUpdateScales>(converter, patterns.getContext());
}
