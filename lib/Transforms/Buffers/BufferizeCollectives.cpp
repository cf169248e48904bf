//===- BufferizeCollectives.cpp - Reductions over ranks on memrefs --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/BufferizeCollectives.h"

#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/IR/FP8Dialect.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::fp8;

namespace {
/// In place, unless somebody else reads what was there.
struct AllReduceAmaxInterface
    : BufferizableOpInterface::ExternalModel<AllReduceAmaxInterface,
                                             AllReduceAmaxOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return true;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &,
                                      const AnalysisState &) const {
    return {{op->getResult(0), BufferRelation::Equivalent}};
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto reduce = cast<AllReduceAmaxOp>(op);
    FailureOr<Value> buffer =
        getBuffer(rewriter, reduce.getAmax(), options, state);
    if (failed(buffer))
      return failure();
    auto create = [&](Value amax) {
      AllReduceAmaxOp::create(rewriter, op->getLoc(), TypeRange(), amax,
                              reduce.getGroupAttr(), reduce.getSizeAttr(),
                              reduce.getFirstCallAttr());
    };
    auto type = cast<MemRefType>(buffer->getType());
    if (type.getLayout().isIdentity()) {
      create(*buffer);
    } else {
      // A part of something: the runtime takes what lies together.
      FailureOr<Value> copy = allocate(rewriter, *buffer, options);
      if (failed(copy) ||
          failed(options.createMemCpy(rewriter, op->getLoc(), *buffer, *copy)))
        return failure();
      create(*copy);
      if (failed(options.createMemCpy(rewriter, op->getLoc(), *copy, *buffer)))
        return failure();
    }
    replaceOpWithBufferizedValues(rewriter, op, *buffer);
    return success();
  }

private:
  static FailureOr<Value> allocate(RewriterBase &rewriter, Value buffer,
                                   const BufferizationOptions &options) {
    auto type = cast<MemRefType>(buffer.getType());
    SmallVector<Value> extents;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        extents.push_back(
            memref::DimOp::create(rewriter, buffer.getLoc(), buffer, dim));
    return options.createAlloc(
        rewriter, buffer.getLoc(),
        MemRefType::get(type.getShape(), type.getElementType()), extents);
  }
};
} // namespace

void fp8::registerCollectivesBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    AllReduceAmaxOp::attachInterface<AllReduceAmaxInterface>(*context);
  });
}
