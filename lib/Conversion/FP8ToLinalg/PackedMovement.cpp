//===- PackedMovement.cpp - What moves codes that share bytes -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes are moved where rows stay whole, or are cut between bytes; else codes
// are taken apart, moved, and put together again.
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Single codes
//===----------------------------------------------------------------------===//

/// A number as its code, an i8, and the converse.
static Value toCode(OpBuilder &b, Location loc, Value number) {
  Type type = b.getIntegerType(getPacking(number.getType()).bits);
  Value bits = arith::BitcastOp::create(b, loc, type, number);
  return arith::ExtUIOp::create(b, loc, b.getI8Type(), bits);
}

static Value toNumber(OpBuilder &b, Location loc, Type type, Value code) {
  Value bits = arith::TruncIOp::create(
      b, loc, b.getIntegerType(getPacking(type).bits), code);
  return arith::BitcastOp::create(b, loc, type, bits);
}

/// A number whose code shares bytes where it lies in memory.
static bool isCode(Type type) {
  return !isa<ShapedType>(type) && isPacked(type);
}

static bool isPackedTensor(Type type) {
  return isa<RankedTensorType>(type) && isPacked(type);
}

//===----------------------------------------------------------------------===//
// Bytes in place of codes
//===----------------------------------------------------------------------===//

static bool hasWholeGroups(RankedTensorType type) {
  return isWhole(getPacking(type), type.getShape().back());
}

/// A copy of `op` with other operands and types, and without regions.
static OperationState getState(Operation *op, ValueRange operands,
                               TypeRange types) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return state;
}

/// Whether an operation that only moves elements moves rows whole: the last
/// dimension of all that has codes is one loop, which nothing else asks for.
static bool movesRows(linalg::LinalgOp op) {
  AffineExpr row;
  int64_t extent = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type || !isPacked(type) || type.getRank() == 0)
      return false;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    AffineExpr last = map.getResults().back();
    if ((row && row != last) || (row && extent != type.getShape().back()) ||
        !isa<AffineDimExpr>(last) ||
        llvm::any_of(map.getResults().drop_back(), [&](AffineExpr expr) {
          return expr.isFunctionOfDim(cast<AffineDimExpr>(last).getPosition());
        }))
      return false;
    row = last;
    extent = type.getShape().back();
  }
  Block *body = op.getBlock();
  Operation *yield = body->getTerminator();
  return &body->front() == yield &&
         llvm::all_of(yield->getOperands(), llvm::IsaPred<BlockArgument>);
}

/// Offsets and sizes of a slice that is cut between bytes, in bytes.
static bool cutBytes(OffsetSizeAndStrideOpInterface op, RankedTensorType whole,
                     RankedTensorType slice,
                     SmallVectorImpl<OpFoldResult> &offsets,
                     SmallVectorImpl<OpFoldResult> &sizes) {
  offsets = op.getMixedOffsets();
  sizes = op.getMixedSizes();
  if (slice.getRank() == 0 || !hasWholeGroups(whole) || !hasWholeGroups(slice))
    return false;
  fp8rt::CodePacking packing = getPacking(whole);
  std::optional<int64_t> offset = getConstantIntValue(offsets.back()),
                         size = getConstantIntValue(sizes.back());
  if (getConstantIntValue(op.getMixedStrides().back()) != 1 || !offset ||
      !size || !packing.isWhole(*offset) || !packing.isWhole(*size) ||
      *size != slice.getShape().back())
    return false;
  Builder b(op.getContext());
  offsets.back() = b.getIndexAttr(packing.getBytesOf(*offset));
  sizes.back() = b.getIndexAttr(packing.getBytesOf(*size));
  return true;
}

/// The op on bytes; null where it has to see codes.
static Value moveBytes(Operation *op, ValueRange operands, OpBuilder &b) {
  Location loc = op->getLoc();
  if (op->getNumResults() != 1)
    return {};
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !isPacked(type) || type.getRank() == 0)
    return {};
  RankedTensorType stored = getStoredType(type);
  AffineExpr bytes = getBytesOf(getPacking(type), b.getAffineSymbolExpr(0));
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    SmallVector<OpFoldResult> sizes = empty.getMixedSizes();
    sizes.back() =
        affine::makeComposedFoldedAffineApply(b, loc, bytes, {sizes.back()});
    return tensor::EmptyOp::create(b, loc, sizes, b.getI8Type());
  }
  if (isa<tensor::CastOp>(op))
    return tensor::CastOp::create(b, loc, stored, operands.front());
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    SmallVector<OpFoldResult> offsets, sizes;
    if (!cutBytes(slice, slice.getSourceType(), type, offsets, sizes))
      return {};
    return tensor::ExtractSliceOp::create(b, loc, stored, operands.front(),
                                          offsets, sizes,
                                          slice.getMixedStrides());
  }
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    SmallVector<OpFoldResult> offsets, sizes;
    if (!cutBytes(insert, insert.getDestType(), insert.getSourceType(), offsets,
                  sizes))
      return {};
    return tensor::InsertSliceOp::create(b, loc, operands[0], operands[1],
                                         offsets, sizes,
                                         insert.getMixedStrides());
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    if (!hasWholeGroups(collapse.getSrcType()))
      return {};
    return tensor::CollapseShapeOp::create(b, loc, stored, operands.front(),
                                           collapse.getReassociationIndices());
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    if (!hasWholeGroups(type))
      return {};
    SmallVector<OpFoldResult> sizes = expand.getMixedOutputShape();
    sizes.back() = affine::makeComposedFoldedAffineApply(
        b, loc,
        b.getAffineSymbolExpr(0).floorDiv(getPacking(type).getCodes()) *
            getPacking(type).getBytes(),
        {sizes.back()});
    return tensor::ExpandShapeOp::create(b, loc, stored, operands.front(),
                                         expand.getReassociationIndices(),
                                         sizes);
  }
  if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    bool isOfRows = static_cast<int64_t>(concat.getDim()) + 1 == type.getRank();
    if (isOfRows && !llvm::all_of(op->getOperandTypes(), [](Type part) {
          return hasWholeGroups(cast<RankedTensorType>(part));
        }))
      return {};
    return tensor::ConcatOp::create(b, loc, stored, concat.getDim(), operands);
  }
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !movesRows(linalgOp))
    return {};
  OperationState state = getState(op, operands, stored);
  Region *region = state.addRegion();
  auto *body = new Block;
  region->push_back(body);
  IRMapping mapping;
  for (BlockArgument argument : linalgOp.getBlock()->getArguments())
    mapping.map(argument, body->addArgument(b.getI8Type(), loc));
  body->push_back(linalgOp.getBlock()->getTerminator()->clone(mapping));
  return b.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

/// Any operation that moves codes which share bytes: the same on bytes, or on
/// codes that are taken apart for it.
struct ConvertMovement : ConversionPattern {
  ConvertMovement(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/0,
                          context) {}
  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa_and_present<tensor::TensorDialect, linalg::LinalgDialect>(
            op->getDialect()))
      return rewriter.notifyMatchFailure(op, "not a data movement");
    if (Value moved = moveBytes(op, operands, rewriter)) {
      rewriter.replaceOp(op, moved);
      return success();
    }
    Location loc = op->getLoc();
    SmallVector<Value> codes;
    for (auto [value, stored] : llvm::zip_equal(op->getOperands(), operands))
      codes.push_back(getCodes(value, stored, rewriter));
    SmallVector<Type> types;
    for (Type type : op->getResultTypes()) {
      auto shaped = dyn_cast<RankedTensorType>(type);
      if (!shaped && isPacked(type))
        return rewriter.notifyMatchFailure(op, "no tensor with a rank");
      types.push_back(shaped && isPacked(shaped)
                          ? shaped.clone(rewriter.getI8Type())
                          : type);
    }
    OperationState state = getState(op, codes, types);
    for (Region &region : op->getRegions())
      cloneBody(region, *state.addRegion(), rewriter);
    SmallVector<Value> results;
    for (auto [result, type] : llvm::zip_equal(
             rewriter.create(state)->getResults(), op->getResultTypes()))
      results.push_back(isPackedTensor(type)
                            ? packCodes(rewriter, loc, type, result)
                            : result);
    rewriter.replaceOp(op, results);
    return success();
  }

  /// An operand with a code in each i8; what is yet to be written has none.
  static Value getCodes(Value value, Value stored, OpBuilder &b) {
    Location loc = value.getLoc();
    if (isCode(value.getType()))
      return toCode(b, loc, stored);
    if (!isPackedTensor(value.getType()))
      return stored;
    if (auto empty = value.getDefiningOp<tensor::EmptyOp>())
      return tensor::EmptyOp::create(b, loc, empty.getMixedSizes(),
                                     b.getI8Type());
    return unpackCodes(b, loc, stored, cast<RankedTensorType>(value.getType()));
  }

  /// Elements that share bytes come and go as codes, and are numbers between.
  static void cloneBody(Region &from, Region &to,
                        ConversionPatternRewriter &rewriter) {
    OpBuilder::InsertionGuard guard(rewriter);
    for (Block &block : from) {
      IRMapping mapping;
      SmallVector<Type> types;
      SmallVector<Location> locations;
      for (BlockArgument argument : block.getArguments()) {
        types.push_back(isCode(argument.getType()) ? rewriter.getI8Type()
                                                   : argument.getType());
        locations.push_back(argument.getLoc());
      }
      Block *body = rewriter.createBlock(&to, to.end(), types, locations);
      for (auto [argument, own] :
           llvm::zip_equal(block.getArguments(), body->getArguments()))
        mapping.map(argument, isCode(argument.getType())
                                  ? toNumber(rewriter, own.getLoc(),
                                             argument.getType(), own)
                                  : Value(own));
      for (Operation &inner : block.without_terminator())
        rewriter.clone(inner, mapping);
      SmallVector<Value> yielded;
      for (Value value : block.getTerminator()->getOperands()) {
        Value own = mapping.lookupOrDefault(value);
        yielded.push_back(
            isCode(own.getType()) ? toCode(rewriter, own.getLoc(), own) : own);
      }
      Operation *yield = rewriter.clone(*block.getTerminator(), mapping);
      yield->setOperands(yielded);
    }
  }
};

struct ConvertDim : OpConversionPattern<tensor::DimOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(tensor::DimOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getSource().getType());
    std::optional<int64_t> dim = op.getConstantIndex();
    if (!type || !dim || *dim >= type.getRank())
      return rewriter.notifyMatchFailure(op, "expected a known dimension");
    OpFoldResult size =
        getSizes(rewriter, op.getLoc(), adaptor.getSource(), type)[*dim];
    rewriter.replaceOp(
        op, getValueOrCreateConstantIndexOp(rewriter, op.getLoc(), size));
    return success();
  }
};

struct ConvertExtract : OpConversionPattern<tensor::ExtractOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(tensor::ExtractOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    if (!isCode(op.getType()))
      return rewriter.notifyMatchFailure(op, "expected codes");
    SmallVector<Value> indices(adaptor.getIndices());
    fp8rt::CodePacking packing = getPacking(op.getType());
    Value place = arith::ConstantIndexOp::create(rewriter, loc, 0);
    int64_t numBytes = 1;
    if (!indices.empty()) {
      Value size =
          arith::ConstantIndexOp::create(rewriter, loc, packing.getCodes());
      place = arith::RemUIOp::create(rewriter, loc, indices.back(), size);
      indices.back() =
          arith::DivUIOp::create(rewriter, loc, indices.back(), size);
      numBytes = packing.getBytes();
    }
    SmallVector<Value> bytes;
    for (int64_t i = 0; i < numBytes; ++i) {
      SmallVector<Value> own(indices);
      if (numBytes > 1)
        own.back() = affine::makeComposedAffineApply(
            rewriter, loc, rewriter.getAffineSymbolExpr(0) * numBytes + i,
            {OpFoldResult(indices.back())});
      bytes.push_back(
          tensor::ExtractOp::create(rewriter, loc, adaptor.getTensor(), own));
    }
    Value code = selectCode(rewriter, loc, packing,
                            joinBytes(rewriter, loc, bytes), place);
    rewriter.replaceOp(op, toNumber(rewriter, loc, op.getType(), code));
    return success();
  }
};

/// A constant of codes that share bytes as these. Attributes have a code in the
/// lowest bits of each.
struct ConvertConstant : OpConversionPattern<arith::ConstantOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "not a tensor");
    RankedTensorType stored = getStoredType(type);
    fp8rt::CodePacking packing = getPacking(type);
    int64_t columns = type.getRank() == 0 ? 1 : type.getShape().back();
    if (auto dense = dyn_cast<DenseFPElementsAttr>(op.getValue())) {
      SmallVector<char> codes(dense.getRawData());
      bool isSplat = dense.isSplat() && type.getRank() != 0;
      // A row with an incomplete group has another last byte, and where a group
      // is several these differ.
      if (isSplat && packing.isWhole(columns) && packing.getBytes() == 1)
        codes.assign(columns = packing.getCodes(), codes.front());
      else if (isSplat)
        codes.assign(type.getNumElements(), codes.front());
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(
          op, DenseElementsAttr::getFromRawBuffer(
                  stored, packCodes(packing, codes, columns)));
      return success();
    }
    auto resource = dyn_cast<DenseResourceElementsAttr>(op.getValue());
    AsmResourceBlob *blob =
        resource ? resource.getRawHandle().getBlob() : nullptr;
    if (!blob)
      return rewriter.notifyMatchFailure(op, "not a dense constant");
    SmallVector<char> bytes = packCodes(packing, blob->getData(), columns);
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, DenseResourceElementsAttr::get(
                stored, resource.getRawHandle().getKey(),
                HeapAsmResourceBlob::allocateAndCopyWithAlign(
                    ArrayRef<char>(bytes), /*align=*/64,
                    /*dataIsMutable=*/false)));
    return success();
  }
};

} // namespace

void fp8::populatePackedPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<ConvertMovement, ConvertDim, ConvertExtract, ConvertConstant>(
      converter, patterns.getContext());
}
