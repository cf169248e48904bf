//===- FuseEpilogues.cpp - Elementwise users of a matmul inside it --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EpilogueOperands.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Support/RewriteLog.h"
#include "fp8/Transforms/Passes.h"
#include "fp8/Transforms/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-fuse-epilogues"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FUSEEPILOGUESPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// How an operand of `type` indexed by `map` in a generic is aligned with the
/// result at the last dimension: as it is, or after unit dimensions are
/// inserted. Nothing for a map that permutes, repeats or picks.
///
/// Returns, for each loop from the first indexed one on, whether the operand
/// has a dimension of its own for it.
std::optional<SmallVector<bool>> getAlignment(AffineMap map,
                                              RankedTensorType type) {
  SmallVector<bool> present(map.getNumDims(), false);
  int64_t last = -1;
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    int64_t loop;
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      loop = dim.getPosition();
    } else if (auto zero = dyn_cast<AffineConstantExpr>(expr)) {
      // A unit dimension: aligned only in its own place from the right.
      if (zero.getValue() != 0 || type.getDimSize(position) != 1)
        return std::nullopt;
      loop = map.getNumDims() - (map.getNumResults() - position);
    } else {
      return std::nullopt;
    }
    if (loop <= last)
      return std::nullopt;
    present[loop] = true;
    last = loop;
  }
  while (!present.empty() && !present.front())
    present.erase(present.begin());
  return present;
}

/// The unit dimensions that an operand of `type` has beyond the loops: those of
/// the only batch of rows, or of single rows.
SmallVector<int64_t> getUnitDims(AffineMap map, RankedTensorType type) {
  SmallVector<int64_t> dims;
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    if (map.getNumResults() - dims.size() > map.getNumDims() &&
        isa<AffineConstantExpr>(expr) && type.getDimSize(dim) == 1)
      dims.push_back(dim);
  return dims;
}

/// The groups of a tensor's dimensions where those of `dropped` are gone.
SmallVector<ReassociationIndices> getGroups(int64_t rank,
                                            ArrayRef<int64_t> dropped) {
  SmallVector<ReassociationIndices> groups(1);
  bool isEmpty = true;
  for (int64_t dim = 0; dim < rank; ++dim) {
    bool isKept = !llvm::is_contained(dropped, dim);
    if (isKept && !isEmpty)
      groups.emplace_back();
    isEmpty &= !isKept;
    groups.back().push_back(dim);
  }
  return groups;
}

/// Inserts the unit dimensions that `alignment` says are missing.
Value align(PatternRewriter &rewriter, Location loc, Value operand,
            ArrayRef<bool> alignment) {
  if (llvm::all_of(alignment, [](bool present) { return present; }))
    return operand;
  auto type = cast<RankedTensorType>(operand.getType());
  SmallVector<int64_t> shape;
  SmallVector<OpFoldResult> sizes;
  SmallVector<ReassociationIndices> reassociation;
  int64_t source = 0;
  for (auto [loop, present] : llvm::enumerate(alignment)) {
    if (present) {
      reassociation.push_back({static_cast<int64_t>(loop)});
      shape.push_back(type.getDimSize(source));
      sizes.push_back(tensor::getMixedSize(rewriter, loc, operand, source));
      ++source;
    } else {
      // The first entry is present, so there is a group to join.
      reassociation.back().push_back(loop);
      shape.push_back(1);
      sizes.push_back(rewriter.getIndexAttr(1));
    }
  }
  return tensor::ExpandShapeOp::create(rewriter, loc, type.clone(shape),
                                       operand, reassociation, sizes);
}

struct FuseEpiloguePattern : OpRewritePattern<linalg::GenericOp> {
  FuseEpiloguePattern(MLIRContext *context, llvm::Statistic &numFused)
      : OpRewritePattern(context), numFused(numFused) {}

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    MatmulOp matmul = getOnlyReadMatmul(op);
    if (!matmul)
      return rewriter.notifyMatchFailure(
          op, "not the only user of a matmul's result in its block");
    if (failed(checkShape(op, rewriter)))
      return failure();

    // Which input is the accumulator, and what the others look like from it.
    SmallVector<Value> operands(matmul.getEpilogueOperands());
    SmallVector<std::pair<unsigned, unsigned>> newArguments;
    SmallVector<unsigned> accumulators;
    IRMapping mapping;
    SmallVector<std::tuple<Value, SmallVector<int64_t>, SmallVector<bool>>>
        toAlign;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      unsigned number = input->getOperandNumber();
      if (input->get() == matmul.getResult()) {
        if (!map.isIdentity())
          return rewriter.notifyMatchFailure(op, "result is read permuted");
        accumulators.push_back(number);
        continue;
      }
      auto type = dyn_cast<RankedTensorType>(input->get().getType());
      if (!type) {
        // A scalar serves as it is: the epilogue may use what surrounds it.
        mapping.map(op.getBody()->getArgument(number), input->get());
        continue;
      }
      SmallVector<int64_t> dropped = getUnitDims(map, type);
      SmallVector<int64_t> shape;
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (!llvm::is_contained(dropped, dim))
          shape.push_back(type.getDimSize(dim));
      std::optional<SmallVector<bool>> alignment =
          getAlignment(map.dropResults(dropped), type.clone(shape));
      if (!alignment)
        return rewriter.notifyMatchFailure(op, "an operand does not broadcast");
      newArguments.emplace_back(number, operands.size() + toAlign.size());
      toAlign.emplace_back(input->get(), dropped, *alignment);
    }
    rewriter.setInsertionPoint(op);
    for (auto &[value, dropped, alignment] : toAlign) {
      Location loc = op.getLoc();
      int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
      if (!dropped.empty())
        value = tensor::CollapseShapeOp::create(rewriter, loc, value,
                                                getGroups(rank, dropped));
      operands.push_back(align(rewriter, loc, value, alignment));
    }

    // New matmul: the old epilogue, then the body of `op`.
    auto resultType = cast<RankedTensorType>(op.getResult(0).getType());
    auto fused =
        MatmulOp::create(rewriter, op.getLoc(), resultType, matmul.getA(),
                         matmul.getB(), operands, matmul.getAccumulate(),
                         matmul.getTransposeA(), matmul.getTransposeB());
    fused->setDiscardableAttrs(matmul->getDiscardableAttrDictionary());
    SmallVector<Type> argumentTypes{rewriter.getF32Type()};
    for (Value operand : operands)
      argumentTypes.push_back(getElementTypeOrSelf(operand));
    SmallVector<Location> locations(argumentTypes.size(), op.getLoc());
    Block *body = rewriter.createBlock(&fused.getEpilogue(), {}, argumentTypes,
                                       locations);

    Value value = body->getArgument(0);
    Type storedType = matmul.getResult().getType().getElementType();
    if (matmul.hasEpilogue()) {
      Block &old = matmul.getEpilogue().front();
      for (BlockArgument argument : old.getArguments())
        mapping.map(argument, body->getArgument(argument.getArgNumber()));
      for (Operation &inner : old.without_terminator())
        rewriter.clone(inner, mapping);
      value = mapping.lookupOrDefault(old.getTerminator()->getOperand(0));
    } else if (!storedType.isF32()) {
      value = arith::TruncFOp::create(rewriter, op.getLoc(), storedType, value);
    }
    for (unsigned number : accumulators)
      mapping.map(op.getBody()->getArgument(number), value);
    for (auto [number, argument] : newArguments)
      mapping.map(op.getBody()->getArgument(number),
                  body->getArgument(argument + 1));
    for (Operation &inner : op.getBody()->without_terminator())
      rewriter.clone(inner, mapping);
    YieldOp::create(
        rewriter, op.getLoc(),
        mapping.lookupOrDefault(op.getBody()->getTerminator()->getOperand(0)));
    LDBG() << "fused: " << OpWithFlags(fused, OpPrintingFlags().skipRegions());
    rewriter.replaceOp(op, fused);
    rewriter.eraseOp(matmul);
    ++numFused;
    return success();
  }

  /// Elementwise on tensors, one result, nothing that knows where it is.
  LogicalResult checkShape(linalg::GenericOp op,
                           PatternRewriter &rewriter) const {
    if (!op.hasPureTensorSemantics() ||
        op.getNumLoops() != op.getNumParallelLoops())
      return rewriter.notifyMatchFailure(op, "not elementwise");
    if (op.getNumResults() != 1)
      return rewriter.notifyMatchFailure(
          op, "more results than the one that an epilogue has");
    if (!op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() ||
        !op.getBody()->getArguments().back().use_empty())
      return rewriter.notifyMatchFailure(op,
                                         "writes permuted or reads its result");
    if (!isa<Float32Type, BFloat16Type, Float16Type>(
            getElementTypeOrSelf(op.getResult(0))))
      return rewriter.notifyMatchFailure(op, "result is not a float matrix");
    for (Operation &inner : op.getBody()->without_terminator())
      if (isa<linalg::IndexOp>(inner) || inner.getNumRegions() != 0 ||
          !isMemoryEffectFree(&inner))
        return rewriter.notifyMatchFailure(op, "body is not elementwise");
    return success();
  }

  llvm::Statistic &numFused;
};

struct FuseEpiloguesPass : fp8::impl::FuseEpiloguesPassBase<FuseEpiloguesPass> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateEpilogueOperandsPatterns(patterns, numRecomputed);
    populateFuseEpiloguesPatterns(patterns, numFused);
    RewriteLog log(DEBUG_TYPE);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                     GreedyRewriteConfig().setListener(&log))))
      signalPassFailure();
  }
};

} // namespace

void fp8::populateFuseEpiloguesPatterns(RewritePatternSet &patterns,
                                        llvm::Statistic &numFused) {
  patterns.add<FuseEpiloguePattern>(patterns.getContext(), numFused);
}
