//===- Hadamard.cpp - Rotations of 16 neighbours --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "FP8ToLinalg.h"
#include "fp8/IR/ScalarBuilder.h"

using namespace mlir;
using namespace mlir::fp8;

/// The element at place `index` of what 16 elements become: additions in the
/// order of the fast transform, which every element goes through by itself.
static Value buildElement(ScalarBuilder &b, SmallVector<Value> values,
                          Value index, int64_t signs) {
  for (auto [j, value] : llvm::enumerate(values)) {
    value = toF32(b, b.getLoc(), value);
    if (signs >> j & 1)
      value = arith::NegFOp::create(b, value);
  }
  Value place = arith::IndexCastUIOp::create(b, b.getI32Type(), index);
  for (int bit = 0; values.size() > 1; ++bit) {
    // The bit of the place as the sign of a number.
    Value sign = arith::AndIOp::create(
        b, arith::ShLIOp::create(b, place, b.i32(31 - bit)),
        b.i32(int32_t(0x80000000)));
    SmallVector<Value> sums;
    for (size_t k = 0; k < values.size(); k += 2) {
      Value other =
          b.fromBits(arith::XOrIOp::create(b, b.bits(values[k + 1]), sign));
      sums.push_back(arith::AddFOp::create(b, values[k], other));
    }
    values = sums;
  }
  return b.mul(values.front(), b.f32(0.25f));
}

namespace {

struct ConvertHadamard : OpConversionPattern<HadamardOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(HadamardOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType type = op.getSource().getType();
    SmallVector<int64_t> block(type.getRank(), 1);
    block.back() = HadamardOp::kSize;
    BlockedNest nest(rewriter, loc, adaptor.getSource(), block);
    AffineMap elements = nest.getElementMap();
    int64_t last = nest.getNumLoops() - 1;
    SmallVector<Value> inputs(HadamardOp::kSize,
                              nest.split(adaptor.getSource()));
    SmallVector<AffineMap> maps;
    for (int64_t j = 0; j < HadamardOp::kSize; ++j) {
      SmallVector<AffineExpr> place(elements.getResults());
      place.back() = rewriter.getAffineConstantExpr(j);
      maps.push_back(
          AffineMap::get(nest.getNumLoops(), 0, place, rewriter.getContext()));
    }
    maps.push_back(elements);
    Value empty = nest.createEmpty(type.getElementType());
    auto generic = linalg::GenericOp::create(
        rewriter, loc, empty.getType(), inputs, empty, maps,
        SmallVector<utils::IteratorType>(nest.getNumLoops(),
                                         utils::IteratorType::parallel),
        [&](OpBuilder &body, Location loc, ValueRange args) {
          ScalarBuilder b(loc, body);
          Value index = linalg::IndexOp::create(b, last);
          Value value = buildElement(
              b, SmallVector<Value>(args.take_front(HadamardOp::kSize)), index,
              op.getSigns());
          if (!type.getElementType().isF32())
            value = arith::TruncFOp::create(b, type.getElementType(), value);
          linalg::YieldOp::create(b, value);
        });
    Value result = nest.join(generic.getResult(0));
    if (result.getType() != type)
      result = tensor::CastOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void fp8::populateHadamardPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<ConvertHadamard>(converter, patterns.getContext());
}
