//===- FuseElementwise.cpp - Chains of elementwise operations to one ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerPowers.h"
#include "ScalarFunctions.h"
#include "Utils/Widening.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-fuse-elementwise"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FUSEELEMENTWISEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static bool hasOnlyParallelLoops(linalg::LinalgOp op) {
  return op.getNumLoops() == op.getNumParallelLoops();
}

/// Whether `op` rounds a matmul's result to 16 bits and can do so in its
/// epilogue. Fused with a user that goes to the epilogue of another matmul, the
/// first would store, and the second read, 32 bits.
static bool roundsMatmul(linalg::LinalgOp op) {
  if (op->getNumResults() != 1 || op.getNumDpsInputs() != 1 ||
      !isa<BFloat16Type, Float16Type>(getElementTypeOrSelf(op->getResult(0))))
    return false;
  auto matmul = op.getDpsInputs().front().getDefiningOp<fp8::MatmulOp>();
  return matmul && matmul->hasOneUse() &&
         matmul->getBlock() == op->getBlock() &&
         matmul.getResult().getType().getElementType().isF32();
}

/// Whether a loop of both would do more for an element than is saved by keeping
/// it in a register. Each fusion copies what has been fused before, so that
/// without an end a chain would take time with the square of its length.
static bool isTooLarge(linalg::LinalgOp producer, linalg::LinalgOp consumer) {
  constexpr size_t maxOperations = 128;
  return producer.getBlock()->getOperations().size() +
             consumer.getBlock()->getOperations().size() >
         maxOperations;
}

/// Whether `op` widens what only a reduction reads, which computes nothing
/// itself. Fused with what makes the narrow numbers, that would write wide
/// ones.
static bool widensForReduction(linalg::LinalgOp op) {
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic || !isWidening(generic) || !op->hasOneUse())
    return false;
  auto user = dyn_cast<linalg::LinalgOp>(*op->user_begin());
  return user && !hasOnlyParallelLoops(user) &&
         user->getBlock() == op->getBlock();
}

/// Whether `op` makes more elements than it reads, of each input, by arithmetic
/// that costs next to nothing: an element of a row for all of its columns, or
/// which keys a query sees of their numbers.
static bool isBroadcast(linalg::GenericOp op) {
  constexpr size_t mostOperations = 4;
  if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 ||
      op.getNumDpsInputs() == 0 || !hasOnlyParallelLoops(op) ||
      op.hasIndexSemantics() ||
      op.getBlock()->getOperations().size() > mostOperations + 1 ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isPermutation())
    return false;
  auto reads = [&](OpOperand *input) {
    return llvm::count_if(op.getMatchingIndexingMap(input).getResults(),
                          llvm::IsaPred<AffineDimExpr>) < op.getNumLoops();
  };
  return llvm::all_of(op.getDpsInputOperands(), reads) &&
         llvm::none_of(op.getBlock()->without_terminator(),
                       [](Operation &each) {
                         return isa<math::MathDialect>(each.getDialect());
                       });
}

/// Gives each user a widening or a broadcast of its own, with which it reads
/// the narrow or the few numbers: nobody shall keep the wide or the many ones
/// in memory for the others.
/// Returns whether there was one.
static bool copyWidenings(Operation *root, RewriterBase &rewriter) {
  SmallVector<linalg::GenericOp> widenings;
  llvm::SmallDenseSet<Operation *> copied;
  root->walk([&](linalg::GenericOp op) {
    // Each of a chain would be copied for all users of those behind it.
    bool isBehind = llvm::any_of(op.getDpsInputs(), [&](Value input) {
      return copied.contains(input.getDefiningOp());
    });
    if (op->hasOneUse() || isBehind || !(isWidening(op) || isBroadcast(op)))
      return;
    copied.insert(op);
    widenings.push_back(op);
  });
  for (linalg::GenericOp op : widenings) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      if (isa<linalg::GenericOp>(use.getOwner()) &&
          use.getOwner()->getBlock() == op->getBlock())
        uses.push_back(&use);
    DenseMap<Operation *, Value> copies;
    for (OpOperand *use : uses) {
      Value &copy = copies[use->getOwner()];
      if (!copy) {
        rewriter.setInsertionPoint(op);
        copy = rewriter.clone(*op)->getResult(0);
      }
      rewriter.modifyOpInPlace(use->getOwner(), [&] { use->set(copy); });
    }
    if (op->use_empty())
      rewriter.eraseOp(op);
  }
  return !widenings.empty();
}

/// The place of the only dimension of `group` that may have several elements,
/// of the first where none may, nothing where more may.
static std::optional<int64_t> getOnlyDim(ArrayRef<int64_t> shape,
                                         ArrayRef<int64_t> group) {
  std::optional<int64_t> found;
  for (int64_t dim : group)
    if (shape[dim] != 1) {
      if (found)
        return std::nullopt;
      found = dim;
    }
  return found ? found : group.front();
}

namespace {
/// Reads what a reshape adds or removes unit dimensions of, so that a row's sum
/// with a dimension of one and without it are the same to who reads it.
struct ReadThroughUnitDims : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Operation *reshape = operand->get().getDefiningOp();
      if (!isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
              reshape))
        continue;
      AffineMap &map = maps[operand->getOperandNumber()], old = map;
      FailureOr<AffineMap> through = getMapThrough(reshape, map);
      if (failed(through))
        continue;
      map = *through;
      // An extent that only this operand tells is lost with its dimension.
      if (!inversePermutation(concatAffineMaps(maps, rewriter.getContext()))) {
        map = old;
        continue;
      }
      rewriter.modifyOpInPlace(op, [&] {
        operand->set(reshape->getOperand(0));
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return failure();
  }

  /// The map by which the source is read where `map` reads the result.
  static FailureOr<AffineMap> getMapThrough(Operation *reshape, AffineMap map) {
    auto collapse = dyn_cast<tensor::CollapseShapeOp>(reshape);
    auto groups =
        collapse
            ? collapse.getReassociationIndices()
            : cast<tensor::ExpandShapeOp>(reshape).getReassociationIndices();
    auto type = cast<RankedTensorType>(
        (collapse ? reshape->getOperand(0) : reshape->getResult(0)).getType());
    // Without groups all dimensions are of one.
    SmallVector<AffineExpr> results(
        cast<RankedTensorType>(reshape->getOperand(0).getType()).getRank(),
        getAffineConstantExpr(0, map.getContext()));
    for (auto [number, group] : llvm::enumerate(groups)) {
      std::optional<int64_t> only = getOnlyDim(type.getShape(), group);
      if (!only)
        return failure();
      if (collapse)
        results[*only] = map.getResult(number);
      else
        results[number] = map.getResult(*only);
    }
    return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                          map.getContext());
  }
};

struct FuseElementwisePass
    : fp8::impl::FuseElementwisePassBase<FuseElementwisePass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void FuseElementwisePass::runOnOperation() {
  SmallVector<linalg::LinalgOp> named;
  getOperation()->walk([&](linalg::LinalgOp op) {
    if (hasOnlyParallelLoops(op) &&
        !isa<linalg::GenericOp, linalg::FillOp, linalg::TransposeOp>(
            op.getOperation()))
      named.push_back(op);
  });
  IRRewriter rewriter(&getContext());
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    // What upstream cannot generalize keeps its name and its own lowering.
    (void)linalg::generalizeNamedOp(rewriter, op);
  }

  RewritePatternSet patterns(&getContext());
  patterns.add<ReadThroughUnitDims>(&getContext());
  linalg::populateElementwiseOpsFusionPatterns(
      patterns, [](OpOperand *operand) {
        auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
        auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
        if (!producer || !consumer || !hasOnlyParallelLoops(producer) ||
            !hasOnlyParallelLoops(consumer))
          return false;
        // A producer outside of the consumer's loop is computed once there.
        bool isOutside = producer->getBlock() != consumer->getBlock();
        bool isLarge = isTooLarge(producer, consumer);
        bool isWorthIt = producer->hasOneUse() && !isOutside && !isLarge &&
                         !roundsMatmul(producer) &&
                         !widensForReduction(consumer);
        LDBG() << (isWorthIt                ? "fused with "
                   : !producer->hasOneUse() ? "not fused, for others use it "
                                              "beside "
                   : isOutside ? "not fused, for it would be computed again by "
                   : isLarge   ? "not fused, for it would be too large with "
                               : "not fused, for it has less to write before ")
               << consumer->getName() << ": "
               << OpWithFlags(producer, OpPrintingFlags().skipRegions());
        return isWorthIt;
      });
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  fp8::populateIntegerPowersPatterns(patterns);
  fp8::populateScalarFunctionsPatterns(patterns);
  // The canonicalizer looks for unreachable blocks, which takes a third of the
  // time here.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  FrozenRewritePatternSet frozen(std::move(patterns));
  // The second time what two broadcasts became, as a row's number times a
  // column's.
  for (bool isFirst : {true, false}) {
    if (!copyWidenings(getOperation(), rewriter) && !isFirst)
      return;
    // Where patterns have not come to an end, less is fused.
    (void)applyPatternsGreedily(getOperation(), frozen, config);
  }
}
