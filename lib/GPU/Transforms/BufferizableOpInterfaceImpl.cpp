//===- BufferizableOpInterfaceImpl.cpp - Launches on memrefs --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/Transforms/BufferizableOpInterfaceImpl.h"

#include "BufferAlignment.h"

#include "fp8/GPU/IR/FP8GPUOps.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::fp8;

/// An allocation of the shape and type of `buffer`.
static FailureOr<Value> allocateLike(RewriterBase &rewriter, Location loc,
                                     Value buffer,
                                     const BufferizationOptions &options) {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<Value> extents;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      extents.push_back(memref::DimOp::create(rewriter, loc, buffer, dim));
  return options.createAlloc(
      rewriter, loc, MemRefType::get(type.getShape(), type.getElementType()),
      extents);
}

namespace {
struct LaunchOpInterface
    : DstBufferizableOpInterfaceExternalModel<LaunchOpInterface, LaunchOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    KernelArgumentAttr argument = cast<LaunchOp>(op).getArgument(operand);
    return argument && argument.getAccess() != KernelAccess::Write;
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto launch = cast<LaunchOp>(op);
    SmallVector<Value> operands, outs;
    rewriter.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands()) {
      std::optional<int64_t> number = launch.getArgumentNumber(operand);
      if (!number) {
        operands.push_back(operand.get());
        continue;
      }
      FailureOr<Value> buffer =
          getBuffer(rewriter, operand.get(), options, state);
      if (failed(buffer))
        return failure();
      if (launch.isDpsInit(&operand))
        outs.push_back(*buffer);
      FailureOr<Value> aligned =
          makeAligned(rewriter, launch, *number, *buffer, options);
      if (failed(aligned))
        return failure();
      operands.push_back(*aligned);
    }
    auto onBuffers = LaunchOp::create(rewriter, op->getLoc(), TypeRange(),
                                      operands, launch.getProperties());
    for (auto [out, used] : llvm::zip_equal(outs, onBuffers.getOuts()))
      if (out != used &&
          failed(options.createMemCpy(rewriter, op->getLoc(), used, out)))
        return failure();
    replaceOpWithBufferizedValues(rewriter, op, outs);
    return success();
  }

private:
  /// The buffer, or a copy of it if the kernel may be unable to use it.
  static FailureOr<Value> makeAligned(RewriterBase &rewriter, LaunchOp launch,
                                      int64_t number, Value buffer,
                                      const BufferizationOptions &options) {
    KernelArgumentAttr argument = launch.getLaunch().getArgument(number);
    std::string wanted = describeWanted(buffer, launch.getLaunch(), number);
    if (wanted.empty())
      return buffer;
    launch.emitRemark() << "argument '" << argument.getName()
                        << "' is copied: the kernel wants " << wanted
                        << ", but got " << buffer.getType();
    FailureOr<Value> copy =
        allocateLike(rewriter, launch.getLoc(), buffer, options);
    if (succeeded(copy) && argument.getAccess() != KernelAccess::Write &&
        failed(options.createMemCpy(rewriter, launch.getLoc(), buffer, *copy)))
      return failure();
    return copy;
  }
};
} // namespace

void fp8::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, FP8GPUDialect *) {
    LaunchOp::attachInterface<LaunchOpInterface>(*context);
  });
}
