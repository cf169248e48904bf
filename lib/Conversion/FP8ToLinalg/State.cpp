//===- State.cpp - read_scale and record_amax -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state is a pointer to fp8rt_state_rows of fp8/Runtime/ScalingState.h, whose
// rows have one element for each slot.
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The fields of fp8rt_state_rows, in order.
enum class Row { NumSlots, Amax, Scale, ScaleInv, Underflow, Saturated };

/// The address of an element of a row.
Value getElementAddress(ImplicitLocOpBuilder &b, Value state, Row row,
                        Value slot, Type elementType) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Type> fields(6, pointer);
  fields[0] = b.getI64Type();
  auto rows = LLVM::LLVMStructType::getLiteral(b.getContext(), fields);
  Value field =
      LLVM::GEPOp::create(b, pointer, rows, state,
                          ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(row)});
  Value base = LLVM::LoadOp::create(b, pointer, field);
  Value index = arith::IndexCastOp::create(b, b.getI64Type(), slot);
  return LLVM::GEPOp::create(b, pointer, elementType, base,
                             ArrayRef<LLVM::GEPArg>{index});
}

struct ConvertReadScale : OpConversionPattern<ReadScaleOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(ReadScaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto read = [&](Row row, RankedTensorType type) -> Value {
      Value address = getElementAddress(b, adaptor.getState(), row,
                                        adaptor.getSlot(), b.getF32Type());
      Value value = LLVM::LoadOp::create(b, b.getF32Type(), address);
      return tensor::FromElementsOp::create(b, type, value);
    };
    rewriter.replaceOp(op, {read(Row::Scale, op.getScale().getType()),
                            read(Row::ScaleInv, op.getScaleInv().getType())});
    return success();
  }
};

struct ConvertRecordAmax : OpConversionPattern<RecordAmaxOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(RecordAmaxOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto update = [&](Row row, Type type,
                      llvm::function_ref<Value(Value)> combine) {
      Value address = getElementAddress(b, adaptor.getState(), row,
                                        adaptor.getSlot(), type);
      Value old = LLVM::LoadOp::create(b, type, address);
      LLVM::StoreOp::create(b, combine(old), address);
    };
    Value zero = arith::ConstantIndexOp::create(b, 0);
    SmallVector<Value> first(op.getAmax().getType().getRank(), zero);
    Value amax = tensor::ExtractOp::create(b, adaptor.getAmax(), first);
    // Magnitudes order as their bits do, with NaN above all.
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), amax);
    update(Row::Amax, b.getI32Type(), [&](Value old) -> Value {
      return arith::MaxUIOp::create(b, old, bits);
    });
    static constexpr Row rows[] = {Row::Underflow, Row::Saturated};
    for (auto [row, count] : llvm::zip(rows, adaptor.getCounts())) {
      Value number = arith::FPToSIOp::create(b, b.getI64Type(), count);
      update(row, b.getI64Type(), [&](Value old) -> Value {
        return arith::AddIOp::create(b, old, number);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void fp8::populateStatePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<ConvertReadScale, ConvertRecordAmax>(converter,
                                                    patterns.getContext());
}
