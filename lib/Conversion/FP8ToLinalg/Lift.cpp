//===- Lift.cpp - Codes of E2M1 to codes of E4M3 --------------------------===//
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

/// The largest E4M3.
static constexpr float kMaxE4M3 = 448;

/// 2^(e - bias) in f32, of the exponent e that `word` (i32) has for place
/// `inWord` (index) of its elements.
static Value getPower(ImplicitLocOpBuilder &b, Value word, Value inWord) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  Value group = arith::DivUIOp::create(
      b, arith::IndexCastUIOp::create(b, b.getI32Type(), inWord),
      constant(LiftOp::kGroupK));
  Value shift = arith::MulIOp::create(b, group, constant(8));
  Value exponent = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, word, shift), constant(15));
  Value bits = arith::ShLIOp::create(
      b, arith::AddIOp::create(b, exponent, constant(127 - LiftOp::kBias)),
      constant(23));
  return arith::BitcastOp::create(b, b.getF32Type(), bits);
}

namespace {
struct ConvertLift : OpConversionPattern<LiftOp> {
  ConvertLift(const TypeConverter &converter, MLIRContext *context,
              const Payloads &payloads)
      : OpConversionPattern(converter, context), payloads(payloads) {}

  LogicalResult
  matchAndRewrite(LiftOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType type = op.getCodes().getType();
    Type elementType = op.getResult().getType().getElementType();
    Value codes =
        unpackCodes(rewriter, loc, adaptor.getCodes(), type, &payloads);
    SmallVector<int64_t> block(type.getRank(), 1);
    block.back() = LiftOp::kWordK;
    BlockedNest nest(rewriter, loc, codes, block);
    // A word for each block, the rows innermost.
    AffineMap grid = nest.getGridMap();
    SmallVector<AffineExpr> places(grid.getResults());
    std::swap(places.back(), places[places.size() - 2]);
    Value empty = nest.createEmpty(elementType);
    auto generic = linalg::GenericOp::create(
        rewriter, loc, empty.getType(),
        ValueRange{nest.split(codes), adaptor.getExponents()}, empty,
        ArrayRef{
            nest.getElementMap(),
            AffineMap::get(grid.getNumDims(), 0, places, rewriter.getContext()),
            nest.getElementMap()},
        SmallVector<utils::IteratorType>(nest.getNumLoops(),
                                         utils::IteratorType::parallel),
        [&](OpBuilder &builder, Location loc, ValueRange args) {
          ImplicitLocOpBuilder b(loc, builder);
          Value number = decode(b, loc, args[0], type.getElementType());
          Value inWord = linalg::IndexOp::create(b, nest.getNumLoops() - 1);
          Value lifted =
              arith::MulFOp::create(b, number, getPower(b, args[1], inWord));
          lifted = clamp(b, loc, lifted, kMaxE4M3);
          linalg::YieldOp::create(b, encode(b, loc, lifted, elementType));
        });
    rewriter.replaceOp(op, nest.join(generic.getResult(0)));
    return success();
  }

  const Payloads &payloads;
};
} // namespace

void fp8::populateLiftPatterns(const TypeConverter &converter,
                               const Payloads &payloads,
                               RewritePatternSet &patterns) {
  patterns.add<ConvertLift>(converter, patterns.getContext(), payloads);
}
