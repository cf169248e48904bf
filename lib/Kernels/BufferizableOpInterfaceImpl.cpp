//===- BufferizableOpInterfaceImpl.cpp - Launches on memrefs --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/BufferizableOpInterfaceImpl.h"

#include "BufferAlignment.h"

#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/FP8Ops.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::fp8;

/// What bulk tensor copies ask of addresses and strides (PTX ISA, tensor maps),
/// and what reads of factors and epilogue operands in pairs do.
static constexpr int64_t kBulkAlignment = 16, kPairAlignment = 8;

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
struct LaunchMatmulOpInterface
    : DstBufferizableOpInterfaceExternalModel<LaunchMatmulOpInterface,
                                              LaunchMatmulOp> {
  /// The result is only written; an amax is raised.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return operand.get() != cast<LaunchMatmulOp>(op).getOuts().front() ||
           !cast<LaunchMatmulOp>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto launch = cast<LaunchMatmulOp>(op);
    SmallVector<Value> operands, outs;
    rewriter.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<TensorType>(operand.get().getType())) {
        operands.push_back(operand.get());
        continue;
      }
      FailureOr<Value> buffer =
          getBuffer(rewriter, operand.get(), options, state);
      if (failed(buffer))
        return failure();
      if (launch.isDpsInit(&operand))
        outs.push_back(*buffer);
      FailureOr<Value> readable =
          makeReadable(rewriter, operand, *buffer, options);
      if (failed(readable))
        return failure();
      operands.push_back(*readable);
    }
    auto onBuffers = LaunchMatmulOp::create(rewriter, op->getLoc(), TypeRange(),
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
  static FailureOr<Value> makeReadable(RewriterBase &rewriter,
                                       OpOperand &operand, Value buffer,
                                       const BufferizationOptions &options) {
    auto launch = cast<LaunchMatmulOp>(operand.getOwner());
    bool isResult =
        operand.get() == launch.getOuts().front() && launch.isDpsInit(&operand);
    bool isBulk = isResult || operand.get() == launch.getA() ||
                  operand.get() == launch.getB();
    if (hasAlignedRows(buffer, isBulk ? kBulkAlignment : kPairAlignment))
      return buffer;
    launch.emitRemark() << "operand " << operand.getOperandNumber()
                        << " is copied: kernels want rows whose elements lie "
                           "together, at multiples of "
                        << (isBulk ? kBulkAlignment : kPairAlignment)
                        << " bytes, but got " << buffer.getType();
    FailureOr<Value> copy =
        allocateLike(rewriter, launch.getLoc(), buffer, options);
    // The result is only written; an amax is raised.
    if (succeeded(copy) && !isResult &&
        failed(options.createMemCpy(rewriter, launch.getLoc(), buffer, *copy)))
      return failure();
    return copy;
  }
};
} // namespace

void fp8::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    LaunchMatmulOp::attachInterface<LaunchMatmulOpInterface>(*context);
  });
}
