//===- State.cpp - Scales, amaxes and caches of the state -----------------===//
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
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The fields of fp8rt_state_rows, in order.
enum class Row { NumSlots, Amax, Scale, ScaleInv, Underflow, Saturated, Cache };

/// The address of an element of a row.
Value getElementAddress(ImplicitLocOpBuilder &b, Value state, Row row,
                        Value slot, Type elementType) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Type> fields(7, pointer);
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

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

/// `offset` bytes into a cache, as a memref of `type`.
Value getCachePart(ImplicitLocOpBuilder &b, Value cache, int64_t offset,
                   RankedTensorType type) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value distance = LLVM::ConstantOp::create(b, b.getI64Type(), offset);
  Value address = LLVM::GEPOp::create(b, pointer, b.getI8Type(), cache,
                                      ArrayRef<LLVM::GEPArg>{distance});
  auto memref = MemRefType::get(type.getShape(), type.getElementType());
  Type i64 = b.getI64Type();
  auto extents = LLVM::LLVMArrayType::get(i64, type.getRank());
  auto descriptorType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {pointer, pointer, i64, extents, extents});
  Value descriptor = LLVM::UndefOp::create(b, descriptorType);
  auto insert = [&](Value value, ArrayRef<int64_t> position) {
    descriptor = LLVM::InsertValueOp::create(b, descriptor, value, position);
  };
  auto insertNumber = [&](int64_t number, ArrayRef<int64_t> position) {
    insert(LLVM::ConstantOp::create(b, i64, number), position);
  };
  insert(address, 0);
  insert(address, 1);
  insertNumber(0, 2);
  SmallVector<int64_t> strides = computeSuffixProduct(type.getShape());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    insertNumber(type.getDimSize(dim), {3, dim});
    insertNumber(strides[dim], {4, dim});
  }
  return UnrealizedConversionCastOp::create(b, memref, descriptor).getResult(0);
}

/// The memrefs of payload and factor in the cache of a slot.
std::pair<Value, Value> getCacheParts(ImplicitLocOpBuilder &b, Value state,
                                      Value slot, ScaledType type) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value address = getElementAddress(b, state, Row::Cache, slot, pointer);
  Value cache = LLVM::LoadOp::create(b, pointer, address);
  return {
      getCachePart(b, cache, 0, type.getPayloadType()),
      getCachePart(b, cache, *type.getCacheSize() - 4, type.getScaleInvType())};
}

struct ConvertStoreCached : OpConversionPattern<StoreCachedOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(StoreCachedOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto [payload, factor] =
        getCacheParts(b, adaptor.getState().front(), adaptor.getSlot().front(),
                      op.getSource().getType());
    ScaledParts parts(adaptor.getSource());
    for (auto [part, memref] :
         {std::pair(parts.payload, payload), {parts.scaleInv, factor}})
      bufferization::MaterializeInDestinationOp::create(
          b, /*result=*/Type(), part, memref, /*restrict=*/true,
          /*writable=*/true);
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertLoadCached : OpConversionPattern<LoadCachedOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(LoadCachedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    ScaledType type = op.getResult().getType();
    auto [payload, factor] =
        getCacheParts(b, adaptor.getState(), adaptor.getSlot(), type);
    SmallVector<Value> parts;
    for (auto [memref, partType] : {std::pair(payload, type.getPayloadType()),
                                    {factor, type.getScaleInvType()}})
      parts.push_back(bufferization::ToTensorOp::create(
          b, partType, memref, /*restrict=*/true, /*writable=*/false));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

} // namespace

void fp8::populateStatePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<ConvertReadScale, ConvertRecordAmax, ConvertStoreCached,
               ConvertLoadCached>(converter, patterns.getContext());
}
