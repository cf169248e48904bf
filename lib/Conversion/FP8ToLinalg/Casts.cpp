//===- Casts.cpp - quantize, dequantize and measure -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "FP8ToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value fp8::constantF32(OpBuilder &builder, Location loc, float value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getF32FloatAttr(value));
}

Value fp8::toF32(OpBuilder &builder, Location loc, Value value) {
  if (value.getType().isF32())
    return value;
  return arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
}

Value fp8::clamp(OpBuilder &builder, Location loc, Value value, float limit) {
  // Ordered comparisons are false for NaN, which so passes; x86's min and max
  // instructions do exactly this.
  ImplicitLocOpBuilder b(loc, builder);
  Value high = constantF32(b, loc, limit), low = constantF32(b, loc, -limit);
  Value above =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, value, high);
  value = arith::SelectOp::create(b, above, high, value);
  Value below = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, value, low);
  return arith::SelectOp::create(b, below, low, value);
}

Value fp8::encode(OpBuilder &builder, Location loc, Value value,
                  Type elementType) {
  Value code = arith::TruncFOp::create(builder, loc, elementType, value);
  if (!isPacked(elementType))
    return code;
  code = arith::BitcastOp::create(
      builder, loc, builder.getIntegerType(getPacking(elementType).bits), code);
  return arith::ExtUIOp::create(builder, loc, builder.getI8Type(), code);
}

Value fp8::decode(OpBuilder &builder, Location loc, Value code,
                  Type elementType) {
  if (isPacked(elementType)) {
    code = arith::TruncIOp::create(
        builder, loc, builder.getIntegerType(getPacking(elementType).bits),
        code);
    code = arith::BitcastOp::create(builder, loc, elementType, code);
  }
  return toF32(builder, loc, code);
}

/// scale_inv of a block in f32, times the tensor's where there is one.
static Value getFactor(OpBuilder &builder, Location loc, ValueRange factors) {
  Value factor = toF32(builder, loc, factors[0]);
  if (factors.size() > 1)
    factor = arith::MulFOp::create(builder, loc, factor, factors[1]);
  return factor;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static SmallVector<utils::IteratorType> getParallel(int64_t rank) {
  return SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel);
}

/// Index of the only element of a tensor of `rank` unit dimensions.
static AffineMap getSingleMap(OpBuilder &builder, int64_t loops, int64_t rank) {
  return AffineMap::get(
      loops, 0, SmallVector<AffineExpr>(rank, builder.getAffineConstantExpr(0)),
      builder.getContext());
}

/// The codes of a group where a nest over a tensor of `type` with `block` may
/// go through its bytes, which are groups: 1 where it may not.
static int64_t getGroupSize(Value payload, RankedTensorType type,
                            ArrayRef<int64_t> block, const Payloads &payloads) {
  fp8rt::CodePacking packing = getPacking(type);
  bool isInGroups = packing.isPacked() && packing.getBytes() == 1 &&
                    type.getRank() != 0 &&
                    !payloads.rowSizes.contains(payload) &&
                    isWhole(packing, type.getShape().back()) &&
                    (block.back() == 1 || isWhole(packing, block.back()));
  return isInGroups ? packing.getCodes() : 1;
}

/// The codes of a scaled value as operands of generics on a nest: those of a
/// nest in groups are in bytes, others have a code in each i8.
static void addCodes(OpBuilder &b, Location loc, const BlockedNest &nest,
                     Value payload, RankedTensorType type,
                     const Payloads &payloads, SmallVectorImpl<Value> &inputs,
                     SmallVectorImpl<AffineMap> &maps) {
  if (nest.isInGroups()) {
    inputs.push_back(nest.getBytes().split(payload));
    maps.push_back(nest.getByteMap());
    return;
  }
  if (isPacked(type))
    payload = unpackCodes(b, loc, payload, type, &payloads);
  inputs.push_back(nest.split(payload));
  maps.push_back(nest.getElementMap());
}

/// The f32 of what addCodes gives, in the body of a generic on the nest.
static Value getNumber(OpBuilder &b, Location loc, const BlockedNest &nest,
                       Value code, Type elementType) {
  if (nest.isInGroups()) {
    Value place = linalg::IndexOp::create(b, loc, nest.getNumLoops() - 1);
    code = selectCode(b, loc, getPacking(elementType), code, place);
  }
  return decode(b, loc, code, elementType);
}

/// Codes (times factors) elementwise, rounded to `resultType`.
static Value dequantize(OpBuilder &builder, Location loc, ScaledParts parts,
                        ScaledType type, bool withFactors, Type resultType,
                        const Payloads &payloads) {
  // Without factors the blocks do not matter: one loop for each dimension.
  SmallVector<int64_t> block(type.getBlock());
  if (!withFactors)
    block.assign(type.getRank(), 1);
  RankedTensorType payloadType = type.getPayloadType();
  BlockedNest nest(
      builder, loc,
      getSizes(builder, loc, parts.payload, payloadType, &payloads), block,
      getGroupSize(parts.payload, payloadType, block, payloads));
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  addCodes(builder, loc, nest, parts.payload, payloadType, payloads, inputs,
           maps);
  if (withFactors) {
    inputs.push_back(parts.scaleInv);
    maps.push_back(nest.getGridMap());
    if (parts.tensorScaleInv) {
      inputs.push_back(parts.tensorScaleInv);
      maps.push_back(getSingleMap(builder, nest.getNumLoops(), type.getRank()));
    }
  }
  Value empty = nest.createEmpty(resultType);
  maps.push_back(nest.getElementMap());
  auto generic = linalg::GenericOp::create(
      builder, loc, empty.getType(), inputs, empty, maps,
      getParallel(nest.getNumLoops()),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value value = getNumber(b, loc, nest, args[0], type.getElementType());
        if (withFactors) {
          Value factor = getFactor(b, loc, args.slice(1, inputs.size() - 1));
          value = arith::MulFOp::create(b, loc, value, factor);
        }
        if (!resultType.isF32())
          value = arith::TruncFOp::create(b, loc, resultType, value);
        linalg::YieldOp::create(b, loc, value);
      });
  return nest.join(generic.getResult(0));
}

Value fp8::dequantizeToF32(OpBuilder &builder, Location loc, ScaledParts parts,
                           ScaledType type, bool withFactors,
                           const Payloads &payloads) {
  return dequantize(builder, loc, parts, type, withFactors,
                    builder.getF32Type(), payloads);
}

/// Stochastically, by the number of the element at `indices`: that of its row,
/// which all dimensions but the last make up, and column.
static Value roundAtPlace(OpBuilder &b, Location loc, Value value,
                          ValueRange seed, ArrayRef<Value> indices,
                          ArrayRef<Value> extents) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  if (indices.empty())
    return roundStochastically(b, loc, value, seed, zero, zero);
  Value row;
  for (auto [index, extent] :
       llvm::zip_equal(indices.drop_back(), extents.drop_back()))
    row = row ? arith::AddIOp::create(
                    b, loc, arith::MulIOp::create(b, loc, row, extent), index)
              : index;
  return roundStochastically(b, loc, value, seed, row ? row : zero,
                             indices.back());
}

namespace {

struct ConvertQuantize : OpConversionPattern<QuantizeOp> {
  ConvertQuantize(const TypeConverter &converter, MLIRContext *context,
                  Payloads &payloads)
      : OpConversionPattern(converter, context), payloads(payloads) {}
  LogicalResult
  matchAndRewrite(QuantizeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ScaledType type = op.getResult().getType();
    bool areBytesShared = isPacked(type.getElementType());
    BlockedNest nest(rewriter, loc, adaptor.getSource(), type.getBlock());
    Value empty = nest.createEmpty(areBytesShared ? rewriter.getI8Type()
                                                  : type.getElementType());
    SmallVector<Value> inputs{nest.split(adaptor.getSource()),
                              adaptor.getScale()};
    SmallVector<AffineMap> maps{nest.getElementMap(), nest.getGridMap()};
    if (Value seed = adaptor.getSeed())
      for (int64_t i = 0; i < ReadSeedOp::kNumWords; ++i) {
        inputs.push_back(seed);
        maps.push_back(AffineMap::get(nest.getNumLoops(), 0,
                                      rewriter.getAffineConstantExpr(i)));
      }
    // The tensor may be of any rank; these are outside of the nest.
    SmallVector<Value> extents;
    if (adaptor.getSeed())
      for (OpFoldResult size : nest.getSizes())
        extents.push_back(getValueOrCreateConstantIndexOp(rewriter, loc, size));
    maps.push_back(nest.getElementMap());
    auto generic = linalg::GenericOp::create(
        rewriter, loc, empty.getType(), inputs, empty, maps,
        getParallel(nest.getNumLoops()),
        [&](OpBuilder &b, Location loc, ValueRange args) {
          Value scaled =
              arith::MulFOp::create(b, loc, toF32(b, loc, args[0]), args[1]);
          scaled = clamp(b, loc, scaled, getMaxFinite(type.getElementType()));
          if (adaptor.getSeed())
            scaled = roundAtPlace(b, loc, scaled,
                                  args.slice(2, ReadSeedOp::kNumWords),
                                  nest.getIndices(b), extents);
          Value code = encode(b, loc, scaled, type.getElementType());
          linalg::YieldOp::create(b, loc, code);
        });
    Value codes = nest.join(generic.getResult(0));
    // By themselves: of loops over a block that do both, LLVM vectorizes none.
    if (areBytesShared)
      codes = packCodes(rewriter, loc, type.getElementType(), codes,
                        staysInPlace(op.getResult()) ? &payloads : nullptr);
    SmallVector<Value> parts{codes, adaptor.getScaleInv()};
    if (adaptor.getTensorScaleInv())
      parts.push_back(adaptor.getTensorScaleInv());
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }

  Payloads &payloads;
};

struct ConvertDequantize : OpConversionPattern<DequantizeOp> {
  ConvertDequantize(const TypeConverter &converter, MLIRContext *context,
                    Payloads &payloads)
      : OpConversionPattern(converter, context), payloads(payloads) {}
  LogicalResult
  matchAndRewrite(DequantizeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType resultType = op.getResult().getType();
    Value result =
        dequantize(rewriter, op.getLoc(), ScaledParts(adaptor.getSource()),
                   op.getSource().getType(), /*withFactors=*/true,
                   resultType.getElementType(), payloads);
    if (result.getType() != resultType)
      result =
          tensor::CastOp::create(rewriter, op.getLoc(), resultType, result);
    rewriter.replaceOp(op, result);
    return success();
  }

  Payloads &payloads;
};

struct ConvertMeasure : OpConversionPattern<MeasureOp> {
  ConvertMeasure(const TypeConverter &converter, MLIRContext *context,
                 Payloads &payloads)
      : OpConversionPattern(converter, context), payloads(payloads) {}
  LogicalResult
  matchAndRewrite(MeasureOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ScaledType type = op.getQuantized().getType();
    ScaledParts parts(adaptor.getQuantized());
    Value source = adaptor.getSource()[0];
    RankedTensorType payloadType = type.getPayloadType();
    BlockedNest nest(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, source),
        type.getBlock(),
        getGroupSize(parts.payload, payloadType, type.getBlock(), payloads));
    int64_t loops = nest.getNumLoops();
    SmallVector<Value> inputs{nest.split(source)};
    SmallVector<AffineMap> maps{nest.getElementMap()};
    addCodes(rewriter, loc, nest, parts.payload, payloadType, payloads, inputs,
             maps);
    inputs.push_back(parts.scaleInv);
    maps.push_back(nest.getGridMap());
    if (parts.tensorScaleInv) {
      inputs.push_back(parts.tensorScaleInv);
      maps.push_back(getSingleMap(rewriter, loops, type.getRank()));
    }
    constexpr unsigned numResults = 5;
    Type f64 = rewriter.getF64Type();
    Value zero =
        arith::ConstantOp::create(rewriter, loc, rewriter.getF64FloatAttr(0.0));
    SmallVector<Value> inits;
    for (unsigned i = 0; i < numResults; ++i) {
      Value empty =
          tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>(), f64);
      inits.push_back(
          linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0));
      maps.push_back(AffineMap::get(loops, 0, rewriter.getContext()));
    }
    auto generic = linalg::GenericOp::create(
        rewriter, loc, TypeRange(ValueRange(inits)), inputs, inits, maps,
        SmallVector<utils::IteratorType>(loops, utils::IteratorType::reduction),
        [&](OpBuilder &builder, Location loc, ValueRange args) {
          Value code =
              getNumber(builder, loc, nest, args[1], type.getElementType());
          buildBody(builder, loc, args, code, type, inputs.size());
        });
    SmallVector<Value> results;
    for (Value result : generic.getResults())
      results.push_back(
          tensor::ExtractOp::create(rewriter, loc, result, ValueRange()));
    rewriter.replaceOp(op, results);
    return success();
  }

  static void buildBody(OpBuilder &builder, Location loc, ValueRange args,
                        Value code, ScaledType type, unsigned numInputs) {
    ImplicitLocOpBuilder b(loc, builder);
    auto elementType = cast<FloatType>(type.getElementType());
    float maxFinite = getMaxFinite(elementType);
    // Half of the gap above the largest finite value: what rounding to nearest
    // still takes back.
    int exponent = llvm::ilogb(llvm::APFloat(maxFinite));
    float halfGap = std::ldexp(
        1.0f, exponent - static_cast<int>(elementType.getFPMantissaWidth()));
    auto cmp = [&](arith::CmpFPredicate predicate, Value x, Value y) -> Value {
      return arith::CmpFOp::create(b, predicate, x, y);
    };
    auto add = [&](Value sum, Value condition, Value value) -> Value {
      Value next = arith::AddFOp::create(b, sum, value);
      return arith::SelectOp::create(b, condition, next, sum);
    };
    auto f64 = [&](double value) -> Value {
      return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
    };
    auto widen = [&](Value x) -> Value {
      return arith::ExtFOp::create(b, b.getF64Type(), x);
    };
    Value x = toF32(b, loc, args[0]);
    Value factor = getFactor(b, loc, args.slice(2, numInputs - 2));
    Value value = arith::MulFOp::create(b, code, factor);
    ValueRange sums = args.drop_front(numInputs);
    Value zero = constantF32(b, loc, 0.0f);
    Value magnitude = math::AbsFOp::create(b, x);
    Value codeMagnitude = math::AbsFOp::create(b, code);

    Value amax = arith::SelectOp::create(
        b, cmp(arith::CmpFPredicate::OGT, widen(magnitude), sums[0]),
        widen(magnitude), sums[0]);
    Value became0 =
        arith::AndIOp::create(b, cmp(arith::CmpFPredicate::ONE, x, zero),
                              cmp(arith::CmpFPredicate::OEQ, code, zero));
    Value underflow = add(sums[1], became0, f64(1.0));
    // |x| > (M + half a gap) * scale_inv, at the largest code.
    Value limit = arith::MulFOp::create(
        b, constantF32(b, loc, maxFinite + halfGap), factor);
    Value beyond = arith::AndIOp::create(
        b, cmp(arith::CmpFPredicate::OGT, magnitude, limit),
        cmp(arith::CmpFPredicate::OEQ, codeMagnitude,
            constantF32(b, loc, maxFinite)));
    Value saturated = add(sums[2], beyond, f64(1.0));
    Value isFinite =
        cmp(arith::CmpFPredicate::OLE, magnitude,
            constantF32(b, loc, std::numeric_limits<float>::max()));
    Value wide = widen(x);
    Value signal = add(sums[3], isFinite, arith::MulFOp::create(b, wide, wide));
    Value error = arith::SubFOp::create(b, wide, widen(value));
    Value noise =
        add(sums[4], isFinite, arith::MulFOp::create(b, error, error));
    linalg::YieldOp::create(
        b, ValueRange{amax, underflow, saturated, signal, noise});
  }

  Payloads &payloads;
};

} // namespace

void fp8::populateCastPatterns(const TypeConverter &converter,
                               Payloads &payloads,
                               RewritePatternSet &patterns) {
  patterns.add<ConvertQuantize, ConvertDequantize, ConvertMeasure>(
      converter, patterns.getContext(), payloads);
}
