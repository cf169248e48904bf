//===- GPUToRuntime.cpp - Device memory and launches to calls -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/GPU/IR/FP8GPUOps.h"
#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/Runtime/Group.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTGPUTORUNTIMEPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

struct ConvertAlloc : ConvertOpToLLVMPattern<memref::AllocOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(memref::AllocOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    MemRefType type = op.getType();
    if (!isConvertibleAndHasIdentityMaps(type))
      return rewriter.notifyMatchFailure(op, "not an identity layout");
    SmallVector<Value> sizes, strides;
    Value bytes;
    getMemRefDescriptorSizes(op.getLoc(), type, adaptor.getDynamicSizes(),
                             rewriter, sizes, strides, bytes);
    RuntimeCalls calls(rewriter, op);
    Value ptr = calls.call(runtime::fp8rt_context_alloc, bytes, calls.i32(0));
    rewriter.replaceOp(op, {createMemRefDescriptor(op.getLoc(), type, ptr, ptr,
                                                   sizes, strides, rewriter)});
    return success();
  }
};

struct ConvertDealloc : ConvertOpToLLVMPattern<memref::DeallocOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(memref::DeallocOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeCalls calls(rewriter, op);
    calls.call(runtime::fp8rt_context_free,
               MemRefDescriptor(adaptor.getMemref())
                   .allocatedPtr(rewriter, op.getLoc()));
    rewriter.eraseOp(op);
    return success();
  }
};

/// What an element of `type` takes in memory.
int64_t getElementBytes(Type type) {
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * getElementBytes(complex.getElementType());
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * getElementBytes(vector.getElementType());
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

struct ConvertCopy : ConvertOpToLLVMPattern<memref::CopyOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(memref::CopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<MemRefType>(op.getSource().getType());
    auto target = dyn_cast<MemRefType>(op.getTarget().getType());
    if (!type || !target || !type.getLayout().isIdentity() ||
        !target.getLayout().isIdentity())
      return rewriter.notifyMatchFailure(op, "not contiguous");
    Location loc = op.getLoc();
    MemRefDescriptor from(adaptor.getSource()), to(adaptor.getTarget());
    RuntimeCalls calls(rewriter, op);
    Value bytes = calls.i64(getElementBytes(type.getElementType()));
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      bytes = LLVM::MulOp::create(calls, bytes, from.size(rewriter, loc, dim));
    calls.call(runtime::fp8rt_context_copy,
               to.bufferPtr(rewriter, loc, *getTypeConverter(), target),
               from.bufferPtr(rewriter, loc, *getTypeConverter(), type), bytes);
    rewriter.eraseOp(op);
    return success();
  }
};

/// The device's copy of a constant.
struct ConvertGetGlobal : ConvertOpToLLVMPattern<memref::GetGlobalOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(memref::GetGlobalOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<MemRefType>(op.getType());
    if (!type.hasStaticShape() || !isConvertibleAndHasIdentityMaps(type))
      return rewriter.notifyMatchFailure(op, "not static and contiguous");
    SmallVector<Value> sizes, strides;
    Value bytes;
    getMemRefDescriptorSizes(op.getLoc(), type, {}, rewriter, sizes, strides,
                             bytes);
    RuntimeCalls calls(rewriter, op);
    Value data =
        LLVM::AddressOfOp::create(calls, calls.getPtrType(), op.getName());
    Value ptr = calls.call(runtime::fp8rt_context_get_constant, data, bytes);
    rewriter.replaceOp(op, {createMemRefDescriptor(op.getLoc(), type, ptr, ptr,
                                                   sizes, strides, rewriter)});
    return success();
  }
};

/// A value that the host needs: it waits for the device.
struct ConvertLoad : ConvertOpToLLVMPattern<memref::LoadOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(memref::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    RuntimeCalls calls(rewriter, op);
    Value from =
        getStridedElementPtr(rewriter, op.getLoc(), op.getMemRefType(),
                             adaptor.getMemref(), adaptor.getIndices());
    Value to = calls.allocate(type);
    calls.call(runtime::fp8rt_context_read, to, from,
               calls.i64(getElementBytes(op.getType())));
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, type, to);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

struct ConvertAllReduce : ConvertOpToLLVMPattern<AllReduceAmaxOp> {
  ConvertAllReduce(const LLVMTypeConverter &converter, RuntimeTexts &texts)
      : ConvertOpToLLVMPattern(converter), texts(texts) {}

  LogicalResult
  matchAndRewrite(AllReduceAmaxOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<MemRefType>(op.getAmax().getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "not in memory");
    if (!type.getLayout().isIdentity())
      return op.emitOpError("expected amaxes that lie together, but got ")
             << type;
    Location loc = op.getLoc();
    MemRefDescriptor amaxes(adaptor.getAmax());
    RuntimeCalls calls(rewriter, op);
    Value count = calls.i64(1);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      count =
          LLVM::MulOp::create(calls, count, amaxes.size(rewriter, loc, dim));
    calls.call(
        runtime::fp8rt_context_all_reduce, calls.text(texts, op.getGroup()),
        amaxes.bufferPtr(rewriter, loc, *getTypeConverter(), type), count,
        calls.i32(op.getFirstCall() ? FP8RT_REDUCE_FIRST_CALL : 0));
    rewriter.eraseOp(op);
    return success();
  }

  RuntimeTexts &texts;
};

//===----------------------------------------------------------------------===//
// Checks and launches
//===----------------------------------------------------------------------===//

struct ConvertAssert : ConvertOpToLLVMPattern<cf::AssertOp> {
  ConvertAssert(const LLVMTypeConverter &converter, RuntimeTexts &texts)
      : ConvertOpToLLVMPattern(converter, /*benefit=*/10), texts(texts) {}

  LogicalResult
  matchAndRewrite(cf::AssertOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeCalls(rewriter, op).require(texts, adaptor.getArg(), op.getMsg());
    rewriter.eraseOp(op);
    return success();
  }

  RuntimeTexts &texts;
};

struct ConvertLaunchFunc : ConvertOpToLLVMPattern<gpu::LaunchFuncOp> {
  ConvertLaunchFunc(const LLVMTypeConverter &converter,
                    const KernelGlobals &kernels)
      : ConvertOpToLLVMPattern(converter), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(gpu::LaunchFuncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const KernelGlobal *kernel = kernels.lookup(op.getKernel());
    if (!kernel)
      return rewriter.notifyMatchFailure(op, "no kernel of that name");
    RuntimeCalls calls(rewriter, op);
    SmallVector<Value> params;
    for (Value value : getTypeConverter()->promoteOperands(
             op.getLoc(), op.getKernelOperands(), adaptor.getKernelOperands(),
             calls)) {
      Value place = calls.allocate(value.getType());
      LLVM::StoreOp::create(calls, value, place);
      params.push_back(place);
    }
    auto narrow = [&](Value x, Value y, Value z) {
      return SmallVector<Value>{calls.narrow(x), calls.narrow(y),
                                calls.narrow(z)};
    };
    calls.launch(*kernel,
                 narrow(adaptor.getGridSizeX(), adaptor.getGridSizeY(),
                        adaptor.getGridSizeZ()),
                 narrow(adaptor.getBlockSizeX(), adaptor.getBlockSizeY(),
                        adaptor.getBlockSizeZ()),
                 calls.i32(0), /*flags=*/0, params);
    rewriter.eraseOp(op);
    return success();
  }

  const KernelGlobals &kernels;
};

struct ConvertGPUToRuntimePass
    : fp8::impl::ConvertGPUToRuntimePassBase<ConvertGPUToRuntimePass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void ConvertGPUToRuntimePass::runOnOperation() {
  MLIRContext *context = &getContext();
  ModuleOp module = getOperation();
  // Upstream's patterns would touch the device's memory from the host.
  WalkResult unsupported = module.walk([](Operation *op) {
    if (!isa<memref::AllocaOp, memref::AtomicRMWOp, memref::ReallocOp,
             memref::ReshapeOp, memref::StoreOp, vector::LoadOp,
             vector::StoreOp, vector::TransferReadOp, vector::TransferWriteOp,
             vector::GatherOp, vector::ScatterOp, vector::MaskedLoadOp,
             vector::MaskedStoreOp>(op))
      return WalkResult::advance();
    op->emitOpError("is not supported on the host of a GPU");
    return WalkResult::interrupt();
  });
  if (unsupported.wasInterrupted())
    return signalPassFailure();
  if (failed(verifyRuntimeSymbols(module)))
    return signalPassFailure();
  KernelGlobals kernels = KernelGlobals::create(module);
  RuntimeTexts texts(module);

  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  // Only upstream's pattern of memref.global is wanted.
  patterns.add<ConvertAlloc, ConvertDealloc, ConvertCopy, ConvertGetGlobal,
               ConvertLoad>(converter, /*benefit=*/10);
  patterns.add<ConvertAllReduce, ConvertAssert>(converter, texts);
  patterns.add<ConvertLaunchFunc>(converter, kernels);
  populateLaunchKernelPatterns(converter, kernels, patterns);

  ConversionTarget target(*context);
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  target.addIllegalOp<memref::AllocOp, memref::CopyOp, memref::DeallocOp,
                      memref::GetGlobalOp, memref::GlobalOp, memref::LoadOp,
                      cf::AssertOp, gpu::LaunchFuncOp, AllReduceAmaxOp,
                      LaunchOp>();
  if (failed(applyPartialConversion(module, target, std::move(patterns))))
    return signalPassFailure();
  for (auto binary : llvm::make_early_inc_range(module.getOps<gpu::BinaryOp>()))
    binary.erase();
  module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  module->removeAttr(kTargetAttrName);
}
