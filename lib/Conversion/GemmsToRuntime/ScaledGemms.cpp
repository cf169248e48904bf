//===- ScaledGemms.cpp - Products with factors as calls -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScaledGemms.h"
#include "fp8/IR/TensorCoreAccumulation.h"
#include "fp8/Runtime/ABI/MLIR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace {
/// Operands: A, its factors, B, its factors, C; loops: [batch,] M, N, K.
struct ConvertScaledGemm : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override;
};

/// An index of an operand: of a loop, or of so many of its iterations; of none
/// where there is one index only.
struct Index {
  std::optional<unsigned> loop;
  int64_t block = 1;
};
} // namespace

static FailureOr<Index> getIndex(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return Index{dim.getPosition()};
  if (isa<AffineConstantExpr>(expr))
    return Index{};
  auto divided = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!divided || divided.getKind() != AffineExprKind::FloorDiv)
    return failure();
  auto dim = dyn_cast<AffineDimExpr>(divided.getLHS());
  auto block = dyn_cast<AffineConstantExpr>(divided.getRHS());
  if (!dim || !block)
    return failure();
  return Index{dim.getPosition(), block.getValue()};
}

/// Each operand's, in the order of its dimensions.
using Indices = SmallVector<SmallVector<Index>>;

static FailureOr<Indices> getIndices(linalg::GenericOp op,
                                     PatternRewriter &rewriter) {
  Indices indices;
  for (auto [map, operand] :
       llvm::zip_equal(op.getIndexingMapsArray(), op->getOperands())) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (!type || !type.getElementType().isF32() || type.getMemorySpace() ||
        !type.isStrided())
      return rewriter.notifyMatchFailure(
          op, "expected strided memrefs of f32 in the default memory");
    SmallVector<Index> &ofOperand = indices.emplace_back();
    for (AffineExpr expr : map.getResults()) {
      FailureOr<Index> index = getIndex(expr);
      if (failed(index))
        return rewriter.notifyMatchFailure(
            op, "expected indices of loops, or of blocks of their iterations");
      ofOperand.push_back(*index);
    }
  }
  return indices;
}

LogicalResult
ConvertScaledGemm::matchAndRewrite(linalg::GenericOp op,
                                   PatternRewriter &rewriter) const {
  std::optional<fp8::TensorCoreAccumulation> sums =
      fp8::TensorCoreAccumulation::get(op);
  unsigned loops = op.getNumLoops();
  if (!sums || op.getNumDpsInputs() != 4 || op.getNumDpsInits() != 1 ||
      loops < 3 || loops > 4)
    return rewriter.notifyMatchFailure(
        op,
        "expected a tensor core's sum of products with their scale factors");
  FailureOr<Indices> indices = getIndices(op, rewriter);
  if (failed(indices))
    return failure();
  FailureOr<func::FuncOp> callee = fp8::declareRuntimeFunction(
      rewriter, op, fp8::runtime::_mlir_ciface_fp8rt_gemm_tcgen05_scaled);
  if (failed(callee))
    return rewriter.notifyMatchFailure(
        op, "expected the name of the runtime's function to be free");

  unsigned m = loops - 3, n = loops - 2, k = loops - 1;
  std::optional<unsigned> batch;
  if (loops == 4)
    batch = 0;
  const unsigned loopsOfOperand[5][2] = {
      {m, k}, {m, k}, {n, k}, {n, k}, {m, n}};
  Location loc = op.getLoc();
  SmallVector<Value> arguments;
  int64_t factorK = 1;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    auto metadata =
        memref::ExtractStridedMetadataOp::create(rewriter, loc, operand);
    SmallVector<OpFoldResult> sizes, strides;
    // A dimension that the operand lacks has size 1.
    auto addLoop = [&](std::optional<unsigned> loop) {
      OpFoldResult size = rewriter.getIndexAttr(1),
                   stride = rewriter.getIndexAttr(0);
      for (auto [dim, index] : llvm::enumerate((*indices)[number]))
        if (loop && index.loop == loop) {
          size = metadata.getConstifiedMixedSizes()[dim];
          stride = metadata.getConstifiedMixedStrides()[dim];
          if (loop == k && index.block > 1)
            factorK = index.block;
        }
      sizes.push_back(getValueOrCreateConstantIndexOp(rewriter, loc, size));
      strides.push_back(getValueOrCreateConstantIndexOp(rewriter, loc, stride));
    };
    addLoop(batch);
    addLoop(loopsOfOperand[number][0]);
    addLoop(loopsOfOperand[number][1]);
    Value offset = getValueOrCreateConstantIndexOp(
        rewriter, loc, metadata.getConstifiedMixedOffset());
    arguments.push_back(memref::ReinterpretCastOp::create(
        rewriter, loc, cast<MemRefType>(callee->getArgumentTypes()[number]),
        metadata.getBaseBuffer(), OpFoldResult(offset), sizes, strides));
  }
  // Factors follow the operands.
  std::swap(arguments[1], arguments[2]);
  for (int64_t value :
       {sums->typeA, sums->typeB, factorK, sums->blockK, sums->parts})
    arguments.push_back(arith::ConstantOp::create(
        rewriter, loc, rewriter.getI32IntegerAttr(value)));
  func::CallOp::create(rewriter, loc, *callee, arguments);
  rewriter.eraseOp(op);
  return success();
}

void fp8::populateScaledGemmPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertScaledGemm>(patterns.getContext());
}
