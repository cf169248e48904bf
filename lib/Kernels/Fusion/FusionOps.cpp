//===- FusionOps.cpp - The fusion as what a kernel computes ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionDialect.h"
#include "FusionSpec.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Kinds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

/// Memory for what has `layout`, from the extents of the inputs: before they
/// are cast.
static Value createEmpty(OpBuilder &b, Location loc, const FusionSpec &spec,
                         ArrayRef<Value> inputs, RankedTensorType type,
                         const FusionLayout &layout) {
  SmallVector<OpFoldResult> sizes;
  for (auto [k, dim] : llvm::enumerate(layout.dims)) {
    if (!type.isDynamicDim(k)) {
      sizes.push_back(b.getIndexAttr(type.getDimSize(k)));
      continue;
    }
    auto [input, at] = *spec.findExtent(dim);
    OpFoldResult size = tensor::getMixedSize(b, loc, inputs[input], at);
    int64_t block = layout.block[dim];
    if (block != 1) {
      Value extent = getValueOrCreateConstantIndexOp(b, loc, size);
      size = arith::CeilDivUIOp::create(
                 b, loc, extent, arith::ConstantIndexOp::create(b, loc, block))
                 .getResult();
    }
    sizes.push_back(size);
  }
  // A known number.
  if (isPacked(type))
    sizes.back() = b.getIndexAttr(getStoredType(type).getShape().back());
  return tensor::EmptyOp::create(b, loc, sizes,
                                 getStoredType(type).getElementType());
}

namespace {
struct FusionKernelOp
    : KernelOpInterface::ExternalModel<FusionKernelOp, FusionOp> {
  FailureOr<std::unique_ptr<KernelSpec>>
  getKernelSpec(Operation *op, std::string &reason) const {
    FailureOr<FusionSpec> spec = FusionSpec::get(cast<FusionOp>(op), reason);
    if (failed(spec))
      return failure();
    return std::unique_ptr<KernelSpec>(
        std::make_unique<FusionSpec>(std::move(*spec)));
  }

  KernelOperands getKernelOperands(Operation *operation, OpBuilder &b) const {
    auto op = cast<FusionOp>(operation);
    Location loc = op.getLoc();
    std::string unused;
    FailureOr<FusionSpec> spec = FusionSpec::get(op, unused);
    KernelOperands operands;
    SmallVector<Value> inputs;
    for (const FusionSpec::Input &input : spec->inputs) {
      Value value = op.getInputs()[input.argument.getArgNumber()];
      inputs.push_back(value);
      operands.ins.push_back(castCodes(
          b, getStoredType(cast<RankedTensorType>(value.getType())), value));
    }
    for (BlockArgument capture : spec->captures)
      operands.captures.push_back(op.getInputs()[capture.getArgNumber()]);
    for (auto [i, type] : llvm::enumerate(op.getResultTypes())) {
      const FusionLayout &layout = spec->getResultLayout(i);
      Value out = createEmpty(b, loc, *spec, inputs,
                              cast<RankedTensorType>(type), layout);
      Value yielded = spec->getBody().getTerminator()->getOperand(i);
      if (yielded.getDefiningOp<AmaxOp>() &&
          spec->getBlock(layout).isSingle()) {
        Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
        out = linalg::FillOp::create(b, loc, zero, out).getResult(0);
      }
      operands.outs.push_back(out);
    }
    return operands;
  }

  SmallVector<Value> buildResults(Operation *op, OpBuilder &b,
                                  ValueRange written) const {
    return llvm::map_to_vector(llvm::zip_equal(written, op->getResultTypes()),
                               [&](auto pair) {
                                 auto [value, type] = pair;
                                 return castCodes(b, type, value);
                               });
  }
};
} // namespace

void fp8::registerFusionKernels(DialectRegistry &registry) {
  registry.insert<FP8Dialect, arith::ArithDialect, linalg::LinalgDialect,
                  tensor::TensorDialect, FusionDialect>();
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    FusionOp::attachInterface<FusionKernelOp>(*context);
  });
}
