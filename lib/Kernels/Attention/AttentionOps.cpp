//===- AttentionOps.cpp - Operations with an attention kernel -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardSpec.h"
#include "AttentionSpec.h"
#include "fp8/IR/Dropout.h"
#include "fp8/IR/FP8QuantizedAttentionOp.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Kinds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

/// What kernels have written, with the types of the operation's results.
static SmallVector<Value> castAll(Operation *operation, OpBuilder &b,
                                  ValueRange written) {
  SmallVector<Value> results;
  for (auto [value, result] : llvm::zip_equal(written, operation->getResults()))
    results.push_back(value.getType() == result.getType()
                          ? value
                          : tensor::CastOp::create(b, operation->getLoc(),
                                                   result.getType(), value));
  return results;
}

/// The mask, with four dimensions.
static Value getMask(AttentionOp op, OpBuilder &b) {
  Value mask = op.getMask();
  auto type = cast<RankedTensorType>(mask.getType());
  int64_t missing = 4 - type.getRank();
  if (missing == 0)
    return mask;
  Location loc = op.getLoc();
  SmallVector<int64_t> shape(missing, 1);
  llvm::append_range(shape, type.getShape());
  SmallVector<OpFoldResult> sizes(missing, b.getIndexAttr(1));
  llvm::append_range(sizes, tensor::getMixedSizes(b, loc, mask));
  SmallVector<ReassociationIndices> parts;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    ReassociationIndices &part = parts.emplace_back();
    if (dim == 0)
      for (int64_t added = 0; added < missing; ++added)
        part.push_back(added);
    part.push_back(missing + dim);
  }
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), mask, parts,
      sizes);
}

/// Codes, or numbers, of Q, K and V, then the factors of these, and what says
/// which keys there are, sinks, what numbers of dropout come of, and the mask.
static KernelOperands getInputs(AttentionOp op, OpBuilder &b) {
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
  llvm::append_range(operands.ins, factors);
  if (Value lengths = op.getKeyLengths())
    operands.ins.push_back(lengths);
  if (Value pages = op.getPageTable())
    operands.ins.push_back(pages);
  for (Value numbers : {op.getKeyStarts(), op.getKeyRanges(), op.getSinks()})
    if (numbers)
      operands.ins.push_back(numbers);
  if (getDropThreshold(op.getRate()))
    operands.ins.push_back(op.getDropout());
  if (op.getMask())
    operands.ins.push_back(getMask(op, b));
  return operands;
}

/// Where the result goes, of inputs as `getInputs` has them.
static Value createResult(AttentionOp op, OpBuilder &b,
                          const KernelOperands &inputs, Type element) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, op.getLoc(), inputs.ins.front());
  sizes.back() = tensor::getMixedSize(b, op.getLoc(), inputs.ins[2], 3);
  return tensor::EmptyOp::create(b, op.getLoc(), sizes, element);
}

static Value createLse(AttentionOp op, OpBuilder &b,
                       const KernelOperands &inputs) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, op.getLoc(), inputs.ins.front());
  SmallVector<OpFoldResult> rows{sizes[0], sizes[op.getHeadDim()],
                                 sizes[op.getSequenceDim()]};
  return tensor::EmptyOp::create(b, op.getLoc(), rows, b.getF32Type());
}

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

  KernelOperands getKernelOperands(Operation *operation, OpBuilder &b) const {
    auto op = cast<AttentionOp>(operation);
    KernelOperands operands = getInputs(op, b);
    operands.outs.push_back(createResult(
        op, b, operands, op.getOutput().getType().getElementType()));
    if (op.getLse())
      operands.outs.push_back(createLse(op, b, operands));
    return operands;
  }

  SmallVector<Value> buildResults(Operation *operation, OpBuilder &b,
                                  ValueRange written) const {
    return castAll(operation, b, written);
  }
};

struct QuantizedAttentionKernel
    : KernelOpInterface::ExternalModel<QuantizedAttentionKernel,
                                       QuantizedAttentionOp> {
  FailureOr<std::unique_ptr<KernelSpec>>
  getKernelSpec(Operation *operation, std::string &reason) const {
    auto op = cast<QuantizedAttentionOp>(operation);
    FailureOr<AttentionSpec> spec =
        AttentionSpec::get(op.getAttention(), reason);
    if (failed(spec))
      return failure();
    spec->setCodes(
        cast<RankedTensorType>(op.getCodes().getType()).getElementType(),
        op.getAmax() != nullptr, op.getScale().getType().getRank());
    return std::unique_ptr<KernelSpec>(
        std::make_unique<AttentionSpec>(std::move(*spec)));
  }

  KernelOperands getKernelOperands(Operation *operation, OpBuilder &b) const {
    auto op = cast<QuantizedAttentionOp>(operation);
    AttentionOp attention = op.getAttention();
    KernelOperands operands = getInputs(attention, b);
    operands.outs.push_back(createResult(
        attention, b, operands,
        cast<RankedTensorType>(op.getCodes().getType()).getElementType()));
    if (op.getAmax()) {
      Location loc = op.getLoc();
      Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
      Value empty = tensor::EmptyOp::create(b, loc, op.getAmax().getType(), {});
      operands.outs.push_back(
          linalg::FillOp::create(b, loc, zero, empty).getResult(0));
    }
    if (op.getLse())
      operands.outs.push_back(createLse(attention, b, operands));
    operands.ins.push_back(op.getScale());
    return operands;
  }

  SmallVector<Value> buildResults(Operation *operation, OpBuilder &b,
                                  ValueRange written) const {
    return castAll(operation, b, written);
  }
};

struct AttentionBackwardKernel
    : KernelOpInterface::ExternalModel<AttentionBackwardKernel,
                                       AttentionBackwardOp> {
  FailureOr<std::unique_ptr<KernelSpec>>
  getKernelSpec(Operation *op, std::string &reason) const {
    FailureOr<AttentionBackwardSpec> spec =
        AttentionBackwardSpec::get(cast<AttentionBackwardOp>(op), reason);
    if (failed(spec))
      return failure();
    return std::unique_ptr<KernelSpec>(
        std::make_unique<AttentionBackwardSpec>(std::move(*spec)));
  }

  /// The gradient, codes or numbers of Q, K and V, their factors, what is known
  /// of rows, their ranges of keys, and what numbers of dropout come of.
  KernelOperands getKernelOperands(Operation *operation, OpBuilder &b) const {
    auto op = cast<AttentionBackwardOp>(operation);
    Location loc = op.getLoc();
    KernelOperands operands;
    operands.ins.push_back(op.getGrad());
    SmallVector<Value> factors;
    for (auto [operand, result] :
         {std::pair<Value, Value>{op.getQ(), op.getDq()},
          {op.getK(), op.getDk()},
          {op.getV(), op.getDv()}}) {
      Value elements = operand;
      if (op.isScaled()) {
        auto parts = DisassembleOp::create(b, loc, operand);
        elements = parts.getPayload();
        factors.push_back(parts.getScaleInv());
      }
      operands.ins.push_back(elements);
      operands.outs.push_back(tensor::EmptyOp::create(
          b, loc, tensor::getMixedSizes(b, loc, elements),
          cast<RankedTensorType>(result.getType()).getElementType()));
    }
    llvm::append_range(operands.ins, factors);
    operands.ins.push_back(op.getLse());
    operands.ins.push_back(op.getDelta());
    if (Value ranges = op.getKeyRanges())
      operands.ins.push_back(ranges);
    if (getDropThreshold(op.getRate()))
      operands.ins.push_back(op.getDropout());
    return operands;
  }

  SmallVector<Value> buildResults(Operation *operation, OpBuilder &b,
                                  ValueRange written) const {
    return castAll(operation, b, written);
  }
};
} // namespace

void fp8::registerAttentionKernels(DialectRegistry &registry) {
  registry.insert<FP8Dialect, arith::ArithDialect, linalg::LinalgDialect,
                  tensor::TensorDialect>();
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    AttentionOp::attachInterface<AttentionKernel>(*context);
    QuantizedAttentionOp::attachInterface<QuantizedAttentionKernel>(*context);
    AttentionBackwardOp::attachInterface<AttentionBackwardKernel>(*context);
  });
}
