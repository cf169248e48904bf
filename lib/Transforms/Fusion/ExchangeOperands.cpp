//===- ExchangeOperands.cpp - Transposed products of exchanged operands ---===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Support/RewriteLog.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#define DEBUG_TYPE "fp8-exchange-operands"

namespace mlir::fp8 {
#define GEN_PASS_DEF_EXCHANGEOPERANDSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Whether `permutation` exchanges the last two dimensions and no others.
static bool exchangesRows(ArrayRef<int64_t> permutation) {
  int64_t rank = permutation.size();
  return (rank == 2 || rank == 3) && permutation[rank - 1] == rank - 2 &&
         permutation[rank - 2] == rank - 1;
}

/// Whether `op` computes each element of one tensor by itself.
static bool isUnary(linalg::GenericOp op) {
  return op.hasPureTensorSemantics() && op.getNumDpsInputs() == 1 &&
         op.getNumDpsInits() == 1 && op.isAllParallelLoops() &&
         !op.hasIndexSemantics() && op.getBlock()->getArgument(1).use_empty() &&
         llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); });
}

/// Zeros, or nothing, in the order of `permutation`.
static Value buildInit(OpBuilder &builder, Location loc, Value init,
                       ArrayRef<int64_t> permutation, bool isZero) {
  auto type = cast<RankedTensorType>(init.getType());
  Value empty = tensor::EmptyOp::create(
      builder, loc,
      applyPermutation(tensor::getMixedSizes(builder, loc, init), permutation),
      type.getElementType());
  if (!isZero)
    return empty;
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

/// The transposed product: that of a canonical contraction is canonical again,
/// another's has the result's map in the other order.
static linalg::ContractOp exchange(OpBuilder &builder,
                                   const Contraction &product, Value init,
                                   ArrayRef<int64_t> permutation) {
  linalg::LinalgOp op = product.op;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<Value> inputs = {op->getOperand(0), op->getOperand(1)};
  auto contract = dyn_cast<linalg::ContractOp>(op.getOperation());
  bool isCanonical = contract && fp8::isCanonical(contract);
  if (isCanonical)
    std::swap(inputs[0], inputs[1]);
  else
    maps[2] =
        AffineMap::get(maps[2].getNumDims(), 0,
                       applyPermutation(maps[2].getResults(), permutation),
                       builder.getContext());
  auto exchanged = linalg::ContractOp::create(
      builder, op.getLoc(), TypeRange{init.getType()}, inputs, ValueRange{init},
      builder.getAffineMapArrayAttr(maps));
  exchanged->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  if (auto kinds = op->getAttrOfType<ArrayAttr>(kOperandsAttrName);
      kinds && isCanonical)
    exchanged->setAttr(kOperandsAttrName,
                       builder.getArrayAttr({kinds[1], kinds[0]}));
  return exchanged;
}

namespace {

struct ExchangeOperands : OpRewritePattern<linalg::TransposeOp> {
  ExchangeOperands(MLIRContext *context, llvm::Statistic &numExchanged)
      : OpRewritePattern(context), numExchanged(numExchanged) {}

  LogicalResult matchAndRewrite(linalg::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> permutation = op.getPermutation();
    if (!op.hasPureTensorSemantics() || !exchangesRows(permutation))
      return rewriter.notifyMatchFailure(op, "no transposed matrices");
    Value value = op.getInput();
    SmallVector<linalg::GenericOp> between;
    auto unary = value.getDefiningOp<linalg::GenericOp>();
    while (unary && isUnary(unary) && value.hasOneUse() &&
           unary->getBlock() == op->getBlock()) {
      between.push_back(unary);
      value = unary.getDpsInputOperand(0)->get();
      unary = value.getDefiningOp<linalg::GenericOp>();
    }
    Operation *source = value.getDefiningOp();
    if (!isa_and_present<linalg::MatmulOp, linalg::BatchMatmulOp,
                         linalg::ContractOp>(source) ||
        !value.hasOneUse() || source->getBlock() != op->getBlock())
      return rewriter.notifyMatchFailure(op, "no result of a product alone");
    ContractionMismatch mismatch;
    FailureOr<Contraction> product =
        matchContraction(cast<linalg::LinalgOp>(source), mismatch);
    if (failed(product))
      return rewriter.notifyMatchFailure(op, mismatch.reason);
    if (!isKnownZero(product->getInit()))
      return rewriter.notifyMatchFailure(op, "the sum begins with something");

    rewriter.setInsertionPoint(op);
    Value init = buildInit(rewriter, source->getLoc(), product->getInit(),
                           permutation, /*isZero=*/true);
    Value result =
        exchange(rewriter, *product, init, permutation)->getResult(0);
    for (linalg::GenericOp each : llvm::reverse(between)) {
      init = buildInit(rewriter, each.getLoc(),
                       each.getDpsInitOperand(0)->get(), permutation,
                       /*isZero=*/false);
      Operation *copy = rewriter.clone(*each);
      rewriter.modifyOpInPlace(copy, [&] {
        copy->setOperands({result, init});
        copy->getResult(0).setType(init.getType());
      });
      result = copy->getResult(0);
    }
    if (result.getType() != op->getResult(0).getType())
      result = tensor::CastOp::create(rewriter, op.getLoc(),
                                      op->getResult(0).getType(), result);
    rewriter.replaceOp(op, result);
    ++numExchanged;
    return success();
  }

  llvm::Statistic &numExchanged;
};

struct ExchangeOperandsPass
    : fp8::impl::ExchangeOperandsPassBase<ExchangeOperandsPass> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExchangeOperands>(&getContext(), numExchanged);
    RewriteLog log(DEBUG_TYPE);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                     GreedyRewriteConfig().setListener(&log))))
      signalPassFailure();
  }
};

} // namespace
