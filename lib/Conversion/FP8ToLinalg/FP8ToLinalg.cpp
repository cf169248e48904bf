//===- FP8ToLinalg.cpp - The executable meaning of the fp8 dialect --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass, its type conversion, and the operations that only take scaled
// values apart or put them together. Scales.cpp, Casts.cpp and Matmul.cpp hold
// the arithmetic.
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/IR/Permutations.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/Transforms/StructuralTypeConversions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTFP8TOLINALGPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Scaled values become their parts, tensors of codes that share bytes those of
/// the bytes, and the state a pointer.
struct PartsConverter : TypeConverter {
  PartsConverter() {
    addConversion([](Type type) { return type; });
    addConversion(
        [](RankedTensorType type) -> Type { return getStoredType(type); });
    addConversion([](StateType type) -> Type {
      return LLVM::LLVMPointerType::get(type.getContext());
    });
    addConversion([](ScaledType type, SmallVectorImpl<Type> &types) {
      types.push_back(getStoredType(type.getPayloadType()));
      types.push_back(type.getScaleInvType());
      if (type.getHasTensorScale())
        types.push_back(type.getTensorScaleInvType());
      return success();
    });
  }
};

struct ConvertAssemble : OpConversionPattern<AssembleOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(AssembleOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    for (ValueRange operand : adaptor.getOperands())
      llvm::append_range(parts, operand);
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

struct ConvertDisassemble : OpConversionPattern<DisassembleOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(DisassembleOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getSource());
    return success();
  }
};

struct ConvertTranspose : OpConversionPattern<TransposeOp> {
  ConvertTranspose(const TypeConverter &converter, MLIRContext *context,
                   Payloads &payloads)
      : OpConversionPattern(converter, context), payloads(payloads) {}
  LogicalResult
  matchAndRewrite(TransposeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> source(adaptor.getSource());
    SmallVector<Value> parts{transposePayload(op, source.front(), rewriter)};
    for (Value part : ArrayRef(source).drop_front())
      parts.push_back(transpose(op, part, rewriter));
    if (parts.front() != source.front())
      payloads.transposed[parts.front()] = {
          source, llvm::to_vector(op.getPermutation())};
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }

  /// Bytes where rows stay what they are, else the codes in them.
  Value transposePayload(TransposeOp op, Value payload, OpBuilder &b) const {
    RankedTensorType type = op.getSource().getType().getPayloadType();
    Location loc = op.getLoc();
    if (isPacked(type) && !keepsRows(op)) {
      Value codes = unpackCodes(b, loc, payload, type, &payloads);
      return packCodes(b, loc, type, transpose(op, codes, b),
                       staysInPlace(op.getResult()) ? &payloads : nullptr);
    }
    Value result = transpose(op, payload, b);
    if (OpFoldResult size = payloads.rowSizes.lookup(payload))
      payloads.rowSizes[result] = size;
    return result;
  }

  static Value transpose(TransposeOp op, Value part, OpBuilder &b) {
    auto type = cast<RankedTensorType>(part.getType());
    if (isOwnTranspose(type, op.getPermutation()))
      return part;
    SmallVector<OpFoldResult> sizes;
    for (int64_t dim : op.getPermutation())
      sizes.push_back(tensor::getMixedSize(b, op.getLoc(), part, dim));
    Value empty =
        tensor::EmptyOp::create(b, op.getLoc(), sizes, type.getElementType());
    return linalg::TransposeOp::create(b, op.getLoc(), part, empty,
                                       op.getPermutation())
        ->getResult(0);
  }

  Payloads &payloads;
};

/// The canonicalizer makes it of scf.if.
struct ConvertSelect : OpConversionPattern<arith::SelectOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(arith::SelectOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    for (auto [ifTrue, ifFalse] :
         llvm::zip_equal(adaptor.getTrueValue(), adaptor.getFalseValue()))
      parts.push_back(arith::SelectOp::create(rewriter, op.getLoc(),
                                              adaptor.getCondition().front(),
                                              ifTrue, ifFalse));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

/// Codes that share bytes as launches of kernels take them.
struct ConvertCodesCast : OpConversionPattern<UnrealizedConversionCastOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(UnrealizedConversionCastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op->getNumOperands() != 1 || op->getNumResults() != 1 ||
        getTypeConverter()->convertType(op.getResult(0).getType()) !=
            adaptor.getInputs().front().getType())
      return rewriter.notifyMatchFailure(op, "no cast of stored codes");
    rewriter.replaceOp(op, adaptor.getInputs());
    return success();
  }
};

/// Unlike upstream's pattern this one converts all blocks of the body, not the
/// first only, and keeps the attributes of arguments and results in step: those
/// of a scaled value stay with its payload.
struct ConvertFunction : OpConversionPattern<func::FuncOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(func::FuncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const TypeConverter &converter = *getTypeConverter();
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    SmallVector<Type> results;
    if (failed(
            converter.convertSignatureArgs(op.getArgumentTypes(), signature)) ||
        failed(converter.convertTypes(op.getResultTypes(), results)))
      return rewriter.notifyMatchFailure(op, "signature does not convert");
    SmallVector<DictionaryAttr> argumentAttrs, resultAttrs;
    for (auto [index, type] : llvm::enumerate(op.getArgumentTypes()))
      spread(op.getArgAttrDict(index), type, argumentAttrs);
    for (auto [index, type] : llvm::enumerate(op.getResultTypes()))
      spread(op.getResultAttrDict(index), type, resultAttrs);
    if (!op.isExternal() && failed(rewriter.convertRegionTypes(
                                &op.getBody(), converter, &signature)))
      return rewriter.notifyMatchFailure(op, "body does not convert");
    rewriter.modifyOpInPlace(op, [&] {
      op.setType(
          rewriter.getFunctionType(signature.getConvertedTypes(), results));
      op.setAllArgAttrs(argumentAttrs);
      op.setAllResultAttrs(resultAttrs);
    });
    return success();
  }

  /// Appends `attributes` and then nothing for the other parts of `type`.
  void spread(DictionaryAttr attributes, Type type,
              SmallVectorImpl<DictionaryAttr> &parts) const {
    auto none = DictionaryAttr::get(getContext());
    SmallVector<Type> types;
    (void)getTypeConverter()->convertType(type, types);
    parts.push_back(attributes ? attributes : none);
    parts.resize(parts.size() + types.size() - 1, none);
  }
};

struct ConvertFP8ToLinalgPass
    : fp8::impl::ConvertFP8ToLinalgPassBase<ConvertFP8ToLinalgPass> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

/// Fusions and groups mean what their bodies mean in their place.
static void inlineBodies(Operation *root) {
  IRRewriter rewriter(root->getContext());
  root->walk([&](Operation *op) {
    if (!isa<FusionOp, SiblingMatmulsOp>(op))
      return;
    Block *body = &op->getRegion(0).front();
    Operation *yield = body->getTerminator();
    rewriter.inlineBlockBefore(body, op, op->getOperands());
    rewriter.replaceOp(op, yield->getOperands());
    rewriter.eraseOp(yield);
  });
}

void ConvertFP8ToLinalgPass::runOnOperation() {
  WalkResult unresolved = getOperation().walk([](QuantizeOp op) {
    if (!op.isUnresolved())
      return WalkResult::advance();
    op.emitOpError("expected a scale, but got the recipe ")
        << op.getRecipeAttr() << ": run fp8-infer-scales first";
    return WalkResult::interrupt();
  });
  if (unresolved.wasInterrupted())
    return signalPassFailure();

  inlineBodies(getOperation());
  expandGroupedMatmuls(getOperation());
  MLIRContext *context = &getContext();
  PartsConverter converter;
  ConversionTarget target(*context);
  RewritePatternSet patterns(context);
  target.addIllegalDialect<FP8Dialect>();
  // Until there is memory to reduce in.
  target.addLegalOp<AllReduceAmaxOp>();
  target.markUnknownOpDynamicallyLegal([&](Operation *op) {
    return converter.isLegal(op) &&
           llvm::all_of(op->getRegions(), [&](Region &region) {
             return converter.isLegal(&region);
           });
  });
  target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp op) {
    return converter.isSignatureLegal(op.getFunctionType()) &&
           converter.isLegal(&op.getBody());
  });

  Payloads payloads;
  populateStatePatterns(converter, patterns);
  populateStateUpdatePatterns(converter, patterns);
  populateScalePatterns(converter, patterns);
  populateCastPatterns(converter, payloads, patterns);
  populateLiftPatterns(converter, payloads, patterns);
  populateHadamardPatterns(converter, patterns);
  populateMatmulPatterns(converter, payloads, patterns);
  populatePackedPatterns(converter, patterns);
  patterns.add<ConvertAssemble, ConvertDisassemble, ConvertCodesCast,
               ConvertFunction, ConvertSelect>(converter, context);
  patterns.add<ConvertTranspose>(converter, context, payloads);
  populateCallOpTypeConversionPattern(patterns, converter);
  populateReturnOpTypeConversionPattern(patterns, converter);
  scf::populateSCFStructuralTypeConversions(converter, patterns);
  cf::populateCFStructuralTypeConversions(converter, patterns);
  if (failed(
          applyPartialConversion(getOperation(), target, std::move(patterns))))
    signalPassFailure();
}
