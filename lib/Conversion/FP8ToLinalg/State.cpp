//===- State.cpp - Scales, amaxes and caches of the state -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state is a pointer to fp8rt_state_rows of fp8/Runtime/ScalingState.h, whose
// rows have one element for each slot. The struct and its array of caches are
// in the host's memory; the rows are where the program's tensors are, hence
// they are read and written as tensors are.
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/Runtime/ABI/MLIR.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

static Value getMemRef(ImplicitLocOpBuilder &b, Value address,
                       ArrayRef<int64_t> shape, Type elementType) {
  auto type = MemRefType::get(shape, elementType);
  Value descriptor = MemRefDescriptor::fromStaticShape(
      b, b.getLoc(), LLVMTypeConverter(b.getContext()), type, address);
  return UnrealizedConversionCastOp::create(b, type, descriptor).getResult(0);
}

namespace {

using Rows = runtime::Struct<fp8rt_state_rows>;

/// The address of an element of a row. The rows' addresses are the host's to
/// read; the elements are the target's.
template <class T>
Value getElementAddress(ImplicitLocOpBuilder &b, Value state,
                        runtime::Field<fp8rt_state_rows, T *> row, Value slot,
                        Type elementType) {
  Value base = loadField(b, state, row);
  Value index = arith::IndexCastOp::create(b, b.getI64Type(), slot);
  return LLVM::GEPOp::create(b, base.getType(), elementType, base,
                             ArrayRef<LLVM::GEPArg>{index});
}

struct ConvertReadScale : OpConversionPattern<ReadScaleOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(ReadScaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto read = [&](auto row, RankedTensorType type) -> Value {
      Value address = getElementAddress(b, adaptor.getState(), row,
                                        adaptor.getSlot(), b.getF32Type());
      Value memref = getMemRef(b, address, type.getShape(), b.getF32Type());
      return bufferization::ToTensorOp::create(b, type, memref,
                                               /*restrict=*/true,
                                               /*writable=*/false);
    };
    rewriter.replaceOp(op, {read(Rows::scale, op.getScale().getType()),
                            read(Rows::scale_inv, op.getScaleInv().getType())});
    return success();
  }
};

/// The slot's words, and the slot, in memory of its own: what words are needed
/// for shall not go through the host.
struct ConvertReadSeed : OpConversionPattern<ReadSeedOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(ReadSeedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = op.getSeed().getType();
    Value numWords = arith::ConstantIndexOp::create(b, ReadSeedOp::kNumWords);
    Value first = arith::MulIOp::create(b, adaptor.getSlot(), numWords);
    Value address = getElementAddress(b, adaptor.getState(), Rows::words, first,
                                      b.getI32Type());
    Value words = bufferization::ToTensorOp::create(
        b, type, getMemRef(b, address, type.getShape(), b.getI32Type()),
        /*restrict=*/true, /*writable=*/false);
    Value slot =
        arith::IndexCastOp::create(b, b.getI32Type(), adaptor.getSlot());
    Value empty = tensor::EmptyOp::create(b, type.getShape(), b.getI32Type());
    AffineMap map = b.getMultiDimIdentityMap(1);
    auto seed = linalg::GenericOp::create(
        b, type, words, empty, ArrayRef{map, map},
        utils::IteratorType::parallel,
        [&](OpBuilder &body, Location loc, ValueRange args) {
          Value index = linalg::IndexOp::create(body, loc, 0);
          Value last = arith::ConstantIndexOp::create(
              body, loc, ReadSeedOp::kNumWords - 1);
          Value isLast = arith::CmpIOp::create(
              body, loc, arith::CmpIPredicate::eq, index, last);
          Value sum = arith::AddIOp::create(body, loc, args[0], slot);
          Value word = arith::SelectOp::create(body, loc, isLast, sum, args[0]);
          linalg::YieldOp::create(body, loc, word);
        });
    rewriter.replaceOp(op, seed.getResult(0));
    return success();
  }
};

/// The slot's amax in memory, which a kernel raises and nobody else reads until
/// it is recorded.
struct ConvertReadAmax : OpConversionPattern<ReadAmaxOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(ReadAmaxOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = op.getAmax().getType();
    Value address = getElementAddress(b, adaptor.getState(), Rows::amax,
                                      adaptor.getSlot(), b.getF32Type());
    Value memref = getMemRef(b, address, type.getShape(), b.getF32Type());
    rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
        op, type, memref, /*restrict=*/true, /*writable=*/true);
    return success();
  }
};

struct ConvertRecordAmax : OpConversionPattern<RecordAmaxOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(RecordAmaxOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override;
};

/// Combines an element of a row with `input`, a tensor of one element or
/// nothing, where the element is.
void updateElement(ImplicitLocOpBuilder &b, Value address, Type type,
                   Value input,
                   llvm::function_ref<Value(OpBuilder &, ValueRange)> combine) {
  SmallVector<int64_t> shape;
  SmallVector<Value> inputs;
  if (input) {
    llvm::append_range(shape,
                       cast<RankedTensorType>(input.getType()).getShape());
    inputs.push_back(input);
  }
  int64_t rank = shape.size();
  Value memref = getMemRef(b, address, shape, type);
  Value old = bufferization::ToTensorOp::create(
      b, RankedTensorType::get(shape, type), memref, /*restrict=*/true,
      /*writable=*/true);
  SmallVector<AffineMap> maps(inputs.size() + 1,
                              b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  auto updated = linalg::GenericOp::create(
      b, old.getType(), inputs, old, maps, loops,
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(body, loc, combine(body, arguments));
      });
  bufferization::MaterializeInDestinationOp::create(
      b, /*result=*/Type(), updated.getResult(0), memref, /*restrict=*/true,
      /*writable=*/true);
}

/// The memory that `result` of an operation with destinations is written to.
Value getDestination(Value result, ConversionPatternRewriter &rewriter) {
  auto op = result.getDefiningOp<DestinationStyleOpInterface>();
  if (!op)
    return {};
  OpOperand *init = op.getTiedOpOperand(cast<OpResult>(result));
  auto tensor = rewriter.getRemappedValue(init->get())
                    .getDefiningOp<bufferization::ToTensorOp>();
  return tensor ? tensor.getBuffer() : Value();
}

LogicalResult
ConvertRecordAmax::matchAndRewrite(RecordAmaxOp op, OpAdaptor adaptor,
                                   ConversionPatternRewriter &rewriter) const {
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  auto getAddress = [&](auto row, Type type) {
    return getElementAddress(b, adaptor.getState(), row, adaptor.getSlot(),
                             type);
  };
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  if (op.getInPlace()) {
    // A copy of the destination to itself, which goes when both are memrefs.
    Value memref = getDestination(op.getAmax(), rewriter);
    if (!memref)
      return rewriter.notifyMatchFailure(
          op, "expected an amax that was raised in the slot's memory");
    bufferization::MaterializeInDestinationOp::create(
        b, /*result=*/Type(), adaptor.getAmax(), memref, /*restrict=*/true,
        /*writable=*/true);
    rewriter.eraseOp(op);
    return success();
  }
  // Magnitudes order as their bits do, with NaN above all.
  updateElement(
      b, getAddress(Rows::amax, i32), i32, adaptor.getAmax(),
      [&](OpBuilder &body, ValueRange arguments) -> Value {
        Value bits =
            arith::BitcastOp::create(body, op.getLoc(), i32, arguments[0]);
        return arith::MaxUIOp::create(body, op.getLoc(), arguments[1], bits);
      });
  static constexpr runtime::Field<fp8rt_state_rows, int64_t *> rows[] = {
      Rows::underflow, Rows::saturated};
  for (auto [row, count] : llvm::zip(rows, adaptor.getCounts())) {
    Value number = arith::FPToSIOp::create(b, i64, count);
    updateElement(b, getAddress(row, i64), i64, /*input=*/Value(),
                  [&](OpBuilder &body, ValueRange arguments) -> Value {
                    return arith::AddIOp::create(body, op.getLoc(),
                                                 arguments[0], number);
                  });
  }
  rewriter.eraseOp(op);
  return success();
}

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
  return getMemRef(b, address, type.getShape(), type.getElementType());
}

/// The memrefs of payload and factor in the cache of a slot.
std::pair<Value, Value> getCacheParts(ImplicitLocOpBuilder &b, Value state,
                                      Value slot, ScaledType type) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value address = getElementAddress(b, state, Rows::cache, slot, pointer);
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

/// A row's memory, as many slots as the state says.
struct ConvertAllReduceState : OpConversionPattern<AllReduceStateOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(AllReduceStateOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value state = adaptor.getState();
    auto type = MemRefType::get({ShapedType::kDynamic}, b.getF32Type());
    LLVMTypeConverter converter(b.getContext());
    auto row =
        MemRefDescriptor::poison(b, b.getLoc(), converter.convertType(type));
    Value address = loadField(b, state, Rows::amax);
    row.setAllocatedPtr(b, b.getLoc(), address);
    row.setAlignedPtr(b, b.getLoc(), address);
    row.setConstantOffset(b, b.getLoc(), 0);
    row.setSize(b, b.getLoc(), 0, loadField(b, state, Rows::num_slots));
    row.setConstantStride(b, b.getLoc(), 0, 1);
    Value memref =
        UnrealizedConversionCastOp::create(b, type, Value(row)).getResult(0);
    AllReduceAmaxOp::create(b, TypeRange(), memref, op.getGroupAttr(),
                            /*size=*/IntegerAttr(), op.getFirstCallAttr());
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
  patterns.add<ConvertAllReduceState, ConvertReadAmax, ConvertReadScale,
               ConvertReadSeed, ConvertRecordAmax, ConvertStoreCached,
               ConvertLoadCached>(converter, patterns.getContext());
}
