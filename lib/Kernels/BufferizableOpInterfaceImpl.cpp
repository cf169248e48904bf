//===- BufferizableOpInterfaceImpl.cpp - Launches on memrefs --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/BufferizableOpInterfaceImpl.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/FP8Ops.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::fp8;

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
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) {
        operands.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
    }
    rewriter.setInsertionPoint(op);
    auto onBuffers = LaunchMatmulOp::create(rewriter, op->getLoc(), TypeRange(),
                                            operands, launch.getProperties());
    replaceOpWithBufferizedValues(rewriter, op, onBuffers.getOuts());
    return success();
  }
};
} // namespace

void fp8::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    LaunchMatmulOp::attachInterface<LaunchMatmulOpInterface>(*context);
  });
}
