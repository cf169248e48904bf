//===- TransposeOps.cpp - Operations that transpose -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransposeDialect.h"
#include "TransposeSpec.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/Permutations.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Kinds.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::fp8;

static FailureOr<std::unique_ptr<KernelSpec>>
getSpec(RankedTensorType source, ArrayRef<int64_t> permutation,
        std::string &reason) {
  FailureOr<TransposeSpec> spec =
      TransposeSpec::get(source, permutation, reason);
  if (failed(spec))
    return failure();
  return std::unique_ptr<KernelSpec>(
      std::make_unique<TransposeSpec>(std::move(*spec)));
}

/// A program may have any extents, and the loops take them.
static FailureOr<std::unique_ptr<KernelSpec>>
checkStarts(FailureOr<std::unique_ptr<KernelSpec>> spec, bool isMatmuls,
            std::string &reason) {
  if (failed(spec) || isMatmuls || cast<TransposeSpec>(**spec).startsAtWords())
    return spec;
  reason = "expected the numbers of rows and columns to be known, so that they "
           "start at words";
  return failure();
}

/// Memory for `source` transposed.
static Value createEmpty(OpBuilder &b, Location loc, Value source,
                         ArrayRef<int64_t> permutation) {
  SmallVector<OpFoldResult> sizes =
      applyPermutation(tensor::getMixedSizes(b, loc, source), permutation);
  return tensor::EmptyOp::create(b, loc, sizes,
                                 getElementTypeOrSelf(source.getType()));
}

namespace {
struct LinalgTranspose
    : KernelOpInterface::ExternalModel<LinalgTranspose, linalg::TransposeOp> {
  FailureOr<std::unique_ptr<KernelSpec>>
  getKernelSpec(Operation *operation, std::string &reason) const {
    auto op = cast<linalg::TransposeOp>(operation);
    auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
    if (!type) {
      reason = "expected tensors, but got memrefs";
      return failure();
    }
    return checkStarts(getSpec(type, op.getPermutation(), reason),
                       /*isMatmuls=*/false, reason);
  }

  KernelOperands getKernelOperands(Operation *operation, OpBuilder &) const {
    auto op = cast<linalg::TransposeOp>(operation);
    return {{op.getInput()}, {}, {op.getInit()}};
  }
};

/// The kernel moves the codes; factors are few. Extents of matmuls need not be
/// known: their kernels need more of them.
struct ScaledTranspose
    : KernelOpInterface::ExternalModel<ScaledTranspose, TransposeOp> {
  FailureOr<std::unique_ptr<KernelSpec>>
  getKernelSpec(Operation *operation, std::string &reason) const {
    auto op = cast<TransposeOp>(operation);
    return checkStarts(
        getSpec(op.getSource().getType().getPayloadType(), op.getPermutation(),
                reason),
        llvm::all_of(op->getUsers(), llvm::IsaPred<MatmulOp, GroupedMatmulOp>),
        reason);
  }

  KernelOperands getKernelOperands(Operation *operation, OpBuilder &b) const {
    auto op = cast<TransposeOp>(operation);
    Value codes =
        DisassembleOp::create(b, op.getLoc(), op.getSource()).getPayload();
    return {
        {codes}, {}, {createEmpty(b, op.getLoc(), codes, op.getPermutation())}};
  }

  SmallVector<Value> buildResults(Operation *operation, OpBuilder &b,
                                  ValueRange written) const {
    auto op = cast<TransposeOp>(operation);
    Location loc = op.getLoc();
    auto parts = DisassembleOp::create(b, loc, op.getSource());
    ArrayRef<int64_t> permutation = op.getPermutation();
    Value factors = parts.getScaleInv();
    if (!isOwnTranspose(cast<RankedTensorType>(factors.getType()), permutation))
      factors = linalg::TransposeOp::create(
                    b, loc, factors, createEmpty(b, loc, factors, permutation),
                    permutation)
                    .getResult()[0];
    return {AssembleOp::create(b, loc, op.getResult().getType(),
                               written.front(), factors,
                               parts.getTensorScaleInv())};
  }
};
} // namespace

void fp8::registerTransposeKernels(DialectRegistry &registry) {
  registry.insert<FP8Dialect, linalg::LinalgDialect, tensor::TensorDialect,
                  TransposeDialect>();
  registry.addExtension(
      +[](MLIRContext *context, linalg::LinalgDialect *, FP8Dialect *) {
        linalg::TransposeOp::attachInterface<LinalgTranspose>(*context);
        TransposeOp::attachInterface<ScaledTranspose>(*context);
      });
}
