//===- AttentionOps.cpp - Operations with an attention kernel -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionSpec.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Kinds.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct AttentionKernel
    : KernelOpInterface::ExternalModel<AttentionKernel, AttentionOp> {
  FailureOr<std::unique_ptr<KernelSpec>>
  getKernelSpec(Operation *op, std::string &reason) const {
    FailureOr<AttentionSpec> spec =
        AttentionSpec::get(cast<AttentionOp>(op), reason);
    if (failed(spec))
      return failure();
    return std::unique_ptr<KernelSpec>(
        std::make_unique<AttentionSpec>(std::move(*spec)));
  }

  /// Codes, or numbers, of Q, K and V, then the factors of these, and what
  /// says which keys there are, and sinks.
  KernelOperands getKernelOperands(Operation *operation, OpBuilder &b) const {
    auto op = cast<AttentionOp>(operation);
    Location loc = op.getLoc();
    KernelOperands operands;
    SmallVector<Value> factors;
    for (Value operand : {op.getQ(), op.getK(), op.getV()}) {
      if (!op.isScaled()) {
        operands.ins.push_back(operand);
        continue;
      }
      auto parts = DisassembleOp::create(b, loc, operand);
      operands.ins.push_back(parts.getPayload());
      factors.push_back(parts.getScaleInv());
    }
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, loc, operands.ins.front());
    SmallVector<OpFoldResult> rows{sizes[0], sizes[op.getHeadDim()],
                                   sizes[op.getSequenceDim()]};
    sizes.back() = tensor::getMixedSize(b, loc, operands.ins[2], 3);
    llvm::append_range(operands.ins, factors);
    if (Value lengths = op.getKeyLengths())
      operands.ins.push_back(lengths);
    if (Value pages = op.getPageTable())
      operands.ins.push_back(pages);
    for (Value numbers : {op.getKeyStarts(), op.getKeyRanges(), op.getSinks()})
      if (numbers)
        operands.ins.push_back(numbers);
    operands.outs.push_back(tensor::EmptyOp::create(
        b, loc, sizes, op.getOutput().getType().getElementType()));
    if (op.getLse())
      operands.outs.push_back(
          tensor::EmptyOp::create(b, loc, rows, b.getF32Type()));
    return operands;
  }

  SmallVector<Value> buildResults(Operation *operation, OpBuilder &b,
                                  ValueRange written) const {
    SmallVector<Value> results;
    for (auto [value, result] :
         llvm::zip_equal(written, operation->getResults()))
      results.push_back(value.getType() == result.getType()
                            ? value
                            : tensor::CastOp::create(b, operation->getLoc(),
                                                     result.getType(), value));
    return results;
  }
};
} // namespace

void fp8::registerAttentionKernels(DialectRegistry &registry) {
  registry.insert<FP8Dialect, tensor::TensorDialect>();
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    AttentionOp::attachInterface<AttentionKernel>(*context);
  });
}
