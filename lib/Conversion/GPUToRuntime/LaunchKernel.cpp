//===- LaunchKernel.cpp - Described launches to calls ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"
#include "fp8/GPU/IR/FP8GPUOps.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;
using namespace mlir::fp8;

/// Stores a memref to a fp8rt_kernel_argument.
static void storeArgument(RuntimeCalls &b, const LLVMTypeConverter &converter,
                          Value place, MemRefType type, Value value) {
  using Argument = runtime::Struct<fp8rt_kernel_argument>;
  Location loc = b.getLoc();
  MemRefDescriptor descriptor(value);
  storeField(b, place, Argument::data,
             descriptor.bufferPtr(b, loc, converter, type));
  for (unsigned dim = 0; dim < type.getRank(); ++dim) {
    storeField(b, place, Argument::sizes[dim], descriptor.size(b, loc, dim));
    storeField(b, place, Argument::strides[dim],
               descriptor.stride(b, loc, dim));
  }
}

namespace {
struct ConvertLaunch : ConvertOpToLLVMPattern<LaunchOp> {
  ConvertLaunch(const LLVMTypeConverter &converter,
                const KernelGlobals &kernels)
      : ConvertOpToLLVMPattern(converter), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(LaunchOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const KernelGlobal *kernel = kernels.lookup(op.getKernel());
    if (!kernel)
      return op.emitOpError("expected a kernel of the program, but got ")
             << op.getKernel();
    // As verified while the kernel was a function.
    if (kernel->launch != op.getLaunch())
      return op.emitOpError("expected the launch of ")
             << op.getKernel() << ", but got another";
    RuntimeCalls b(rewriter, op);
    Type argumentType = getLLVMType<fp8rt_kernel_argument>(b.getContext());
    Value arguments =
        b.allocate<fp8rt_kernel_argument>(op.getLaunch().getArguments().size());
    int32_t index = 0;
    auto store = [&](ValueRange memrefs, ValueRange descriptors) {
      for (auto [memref, descriptor] : llvm::zip_equal(memrefs, descriptors)) {
        Value place =
            LLVM::GEPOp::create(b, b.getPtrType(), argumentType, arguments,
                                ArrayRef<LLVM::GEPArg>{index++});
        storeArgument(b, *getTypeConverter(), place,
                      cast<MemRefType>(memref.getType()), descriptor);
      }
    };
    store(op.getIns(), adaptor.getIns());
    store(op.getOuts(), adaptor.getOuts());
    b.launchKernel(*kernel, arguments, adaptor.getCaptures());
    rewriter.eraseOp(op);
    return success();
  }

  const KernelGlobals &kernels;
};
} // namespace

void fp8::populateLaunchKernelPatterns(const LLVMTypeConverter &converter,
                                       const KernelGlobals &kernels,
                                       RewritePatternSet &patterns) {
  patterns.add<ConvertLaunch>(converter, kernels);
}
