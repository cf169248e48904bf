//===- StateUpdate.cpp - update_scales ------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fp8;

/// The largest finite value of every slot's format.
static Value buildMaxFinite(OpBuilder &builder, Location loc,
                            StateTableAttr table) {
  auto limits = llvm::map_to_vector(table.getSlotRange(), [](SlotAttr slot) {
    return getMaxFinite(slot.getFormat());
  });
  auto type =
      RankedTensorType::get({table.getNumSlots()}, builder.getF32Type());
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, ArrayRef(limits)));
}

namespace {

struct ConvertUpdateScales : OpConversionPattern<UpdateScalesOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(UpdateScalesOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    StateTableAttr table = op.getTable();
    Value maxFinite = buildMaxFinite(rewriter, op.getLoc(), table);
    rewriter.replaceOp(op,
                       table.getUpdate().buildTensorUpdate(
                           rewriter, op.getLoc(), maxFinite, adaptor.getScale(),
                           adaptor.getAmax(), adaptor.getState()));
    return success();
  }
};

} // namespace

void fp8::populateStateUpdatePatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<ConvertUpdateScales>(converter, patterns.getContext());
}
