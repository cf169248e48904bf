//===- FlattenRows.cpp - Batches of rows as rows --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: matrix products on rows, between reshapes of tensors of batches of
// them, or on such tensors. Leaves: what surrounds the products on rows too,
// and reshapes where the batches are told apart, and at the ends of the
// function.
//
// Values do not change: sums are over the same elements in the same order.
//
//===----------------------------------------------------------------------===//

#include "LoopNests.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-flatten-rows"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FLATTENROWSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The loops of an operation, some of which become one.
class Flattening {
public:
  /// Reshapes of values that several read, by their groups.
  using Collapsed = DenseMap<std::pair<Value, Attribute>, Value>;

  Flattening(RewriterBase &rewriter, Operation *op, ArrayRef<bool> merged,
             Collapsed &collapsed)
      : b(rewriter), op(op), merged(merged), collapsed(collapsed) {
    int64_t number = 0;
    for (size_t loop = 0; loop <= merged.size(); ++loop) {
      number += loop != 0 && !merged[loop - 1];
      newLoops.push_back(number);
    }
  }

  void run();

private:
  void runLinalg(linalg::LinalgOp linalgOp);
  /// Dimensions of a tensor, indexed by `map`, that become one.
  SmallVector<ReassociationIndices> getGroups(AffineMap map) const;
  Value collapse(Value value, AffineMap map);
  RankedTensorType collapse(Type type, AffineMap map) const;
  void replace(ArrayRef<AffineMap> maps, ValueRange results);
  AffineMap getNewMap(AffineMap map) const;
  int64_t getNumNewLoops() const { return newLoops.back() + 1; }
  AffineMap getIdentity() const {
    return b.getMultiDimIdentityMap(newLoops.size());
  }

  RewriterBase &b;
  Operation *op;
  ArrayRef<bool> merged;
  Collapsed &collapsed;
  /// The loop that each becomes.
  SmallVector<int64_t> newLoops;
};

} // namespace

SmallVector<ReassociationIndices> Flattening::getGroups(AffineMap map) const {
  SmallVector<ReassociationIndices> groups;
  std::optional<unsigned> last;
  for (auto [place, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (dim && last && dim.getPosition() == *last + 1 && merged[*last])
      groups.back().push_back(place);
    else
      groups.push_back({static_cast<int64_t>(place)});
    last = dim ? std::optional(dim.getPosition()) : std::nullopt;
  }
  return groups;
}

RankedTensorType Flattening::collapse(Type type, AffineMap map) const {
  auto tensorType = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape;
  for (const ReassociationIndices &group : getGroups(map)) {
    int64_t extent = 1;
    for (int64_t dim : group) {
      int64_t factor = tensorType.getDimSize(dim);
      if (ShapedType::isDynamic(factor) || ShapedType::isDynamic(extent))
        extent = ShapedType::kDynamic;
      else
        extent *= factor;
    }
    shape.push_back(extent);
  }
  return tensorType.clone(shape);
}

Value Flattening::collapse(Value value, AffineMap map) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  SmallVector<ReassociationIndices> groups = getGroups(map);
  if (!type || static_cast<int64_t>(groups.size()) == type.getRank())
    return value;
  Attribute key = getReassociationIndicesAttribute(b, groups);
  Value &known = collapsed[{value, key}];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(value);
    known = tensor::CollapseShapeOp::create(b, op->getLoc(),
                                            collapse(type, map), value, groups);
  }
  return known;
}

AffineMap Flattening::getNewMap(AffineMap map) const {
  SmallVector<AffineExpr> exprs;
  SmallVector<AffineExpr> replacements;
  for (int64_t loop : newLoops)
    replacements.push_back(b.getAffineDimExpr(loop));
  for (const ReassociationIndices &group : getGroups(map))
    exprs.push_back(map.getResult(group.front()).replaceDims(replacements));
  return AffineMap::get(getNumNewLoops(), 0, exprs, b.getContext());
}

/// The extent of a dimension of `value`, by what is known without computing it.
static OpFoldResult getExtent(OpBuilder &b, Location loc, Value value,
                              int64_t dim) {
  while (auto linalgOp = value.getDefiningOp<linalg::LinalgOp>())
    value = linalgOp.getDpsInits()[cast<OpResult>(value).getResultNumber()];
  if (auto empty = value.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes()[dim];
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>())
    return expand.getMixedOutputShape()[dim];
  return tensor::getMixedSize(b, loc, value, dim);
}

void Flattening::replace(ArrayRef<AffineMap> maps, ValueRange results) {
  Location loc = op->getLoc();
  SmallVector<Value> expanded;
  for (auto [old, result, map] :
       llvm::zip_equal(op->getResults(), results, maps)) {
    auto type = cast<RankedTensorType>(old.getType());
    // All tensors have the same dimensions where nothing is cut.
    Value known = isa<linalg::LinalgOp>(op)
                      ? Value(old)
                      : *llvm::find_if(op->getOperands(), [](Value operand) {
                          return isa<RankedTensorType>(operand.getType());
                        });
    if (result.getType() == type) {
      expanded.push_back(result);
      continue;
    }
    SmallVector<ReassociationIndices> groups = getGroups(map);
    SmallVector<OpFoldResult> sizes(type.getRank());
    for (auto [place, group] : llvm::enumerate(groups))
      for (int64_t dim : group)
        if (!type.isDynamicDim(dim))
          sizes[dim] = b.getIndexAttr(type.getDimSize(dim));
        else if (group.size() == 1)
          sizes[dim] = tensor::getMixedSize(b, loc, result, place);
        else
          sizes[dim] = getExtent(b, loc, known, dim);
    expanded.push_back(
        tensor::ExpandShapeOp::create(b, loc, type, result, groups, sizes));
  }
  b.replaceOp(op, expanded);
}

void Flattening::runLinalg(linalg::LinalgOp linalgOp) {
  SmallVector<AffineMap> maps = linalgOp.getIndexingMapsArray(), newMaps;
  SmallVector<Value> operands;
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), maps)) {
    operands.push_back(collapse(operand, map));
    newMaps.push_back(getNewMap(map));
  }
  ArrayRef<AffineMap> resultMaps =
      ArrayRef(maps).take_back(linalgOp.getNumDpsInits());
  SmallVector<Type> types;
  for (auto [type, map] : llvm::zip_equal(op->getResultTypes(), resultMaps))
    types.push_back(collapse(type, map));

  Operation *flat;
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    // Its maps are those of a permuted source and of a result as it is.
    SmallVector<int64_t> permutation(newMaps.front().getNumResults());
    for (auto [dim, expr] : llvm::enumerate(newMaps.front().getResults()))
      permutation[cast<AffineDimExpr>(expr).getPosition()] = dim;
    flat = linalg::TransposeOp::create(b, op->getLoc(), operands[0],
                                       operands[1], permutation);
  } else if (isa<linalg::BroadcastOp>(op)) {
    SmallVector<int64_t> added;
    for (int64_t loop = 0; loop < getNumNewLoops(); ++loop)
      if (!newMaps.front().isFunctionOfDim(loop))
        added.push_back(loop);
    flat = linalg::BroadcastOp::create(b, op->getLoc(), operands[0],
                                       operands[1], added);
  } else {
    flat = mlir::clone(b, op, types, operands);
    if (auto contract = dyn_cast<linalg::ContractOp>(flat))
      contract.setIndexingMapsAttr(b.getAffineMapArrayAttr(newMaps));
    if (auto generic = dyn_cast<linalg::GenericOp>(flat)) {
      generic.setIndexingMapsAttr(b.getAffineMapArrayAttr(newMaps));
      SmallVector<Attribute> iterators;
      for (auto [loop, iterator] :
           llvm::enumerate(generic.getIteratorTypes().getValue()))
        if (loop == 0 || !merged[loop - 1])
          iterators.push_back(iterator);
      generic.setIteratorTypesAttr(b.getArrayAttr(iterators));
      generic.walk([&](linalg::IndexOp index) {
        index.setDim(newLoops[index.getDim()]);
      });
    }
  }
  flat->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  replace(resultMaps, flat->getResults());
}

/// The entries of `values` of the first dimension of each group.
static SmallVector<OpFoldResult>
getFirst(ArrayRef<OpFoldResult> values, ArrayRef<ReassociationIndices> groups) {
  return llvm::map_to_vector(groups, [&](const ReassociationIndices &group) {
    return values[group.front()];
  });
}

void Flattening::run() {
  b.setInsertionPoint(op);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return runLinalg(linalgOp);
  AffineMap identity = getIdentity();
  SmallVector<Value> operands = llvm::map_to_vector(
      op->getOperands(), [&](Value value) { return value; });
  for (Value &operand : operands)
    if (isa<RankedTensorType>(operand.getType()))
      operand = collapse(operand, identity);
  RankedTensorType type = collapse(op->getResult(0).getType(), identity);
  Location loc = op->getLoc();
  // What is merged is neither cut nor moved, so that offsets are 0, strides 1.
  auto getSizes = [&](auto slice, Value whole) {
    SmallVector<OpFoldResult> sizes;
    for (const ReassociationIndices &group : getGroups(identity))
      sizes.push_back(group.size() == 1
                          ? slice.getMixedSizes()[group.front()]
                          : tensor::getMixedSize(b, loc, whole, sizes.size()));
    return sizes;
  };
  Value flat;
  SmallVector<ReassociationIndices> groups = getGroups(identity);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    flat = tensor::ExtractSliceOp::create(
        b, loc, type, operands[0], getFirst(slice.getMixedOffsets(), groups),
        getSizes(slice, operands[0]),
        getFirst(slice.getMixedStrides(), groups));
  else if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
    flat = tensor::InsertSliceOp::create(
        b, loc, operands[0], operands[1],
        getFirst(slice.getMixedOffsets(), groups), getSizes(slice, operands[1]),
        getFirst(slice.getMixedStrides(), groups));
  else if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    flat = tensor::ConcatOp::create(b, loc, type, newLoops[concat.getDim()],
                                    operands);
  else
    flat = mlir::clone(b, op, TypeRange(type), operands)->getResult(0);
  replace(identity, flat);
}

namespace {

/// tensor.reshape of rows to batches of them, whose shape has an extent that is
/// not known for each dimension of batches, as tensor.expand_shape.
struct RaiseReshape : OpRewritePattern<tensor::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto source = dyn_cast<RankedTensorType>(op.getSource().getType());
    auto result = dyn_cast<RankedTensorType>(op.getResult().getType());
    auto shape = op.getShape().getDefiningOp<tensor::FromElementsOp>();
    if (!source || !result || !shape || source.getRank() == 0 ||
        source.getRank() >= result.getRank())
      return rewriter.notifyMatchFailure(op, "no dimensions that are known");
    // What is behind the rows is the same, so that the rows are.
    int64_t added = result.getRank() - source.getRank();
    for (int64_t dim = 1; dim < source.getRank(); ++dim)
      if (source.isDynamicDim(dim) ||
          source.getDimSize(dim) != result.getDimSize(dim + added))
        return rewriter.notifyMatchFailure(op, "rows that are cut otherwise");
    if (result.getNumDynamicDims() > 0 && !source.isDynamicDim(0))
      return rewriter.notifyMatchFailure(op, "a number of rows that is known");
    if (source.isDynamicDim(0) && result.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "a number of rows that is not");
    SmallVector<OpFoldResult> sizes;
    for (int64_t dim = 0; dim < result.getRank(); ++dim) {
      if (!result.isDynamicDim(dim)) {
        sizes.push_back(rewriter.getIndexAttr(result.getDimSize(dim)));
        continue;
      }
      Value size = shape.getElements()[dim];
      if (!size.getType().isIndex())
        size = arith::IndexCastOp::create(rewriter, op.getLoc(),
                                          rewriter.getIndexType(), size);
      sizes.push_back(size);
    }
    SmallVector<ReassociationIndices> groups(1);
    for (int64_t dim = 0; dim < result.getRank(); ++dim) {
      if (dim > added)
        groups.emplace_back();
      groups.back().push_back(dim);
    }
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
        op, result, op.getSource(), groups, sizes);
    return success();
  }
};

/// Dimensions of one element that a reshape has with those behind them, with
/// those before: a batch of single rows is rows.
template <typename ReshapeOp>
struct GroupUnitDims : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern<ReshapeOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    bool isExpand = std::is_same_v<ReshapeOp, tensor::ExpandShapeOp>;
    auto wide = cast<RankedTensorType>(isExpand ? op->getResult(0).getType()
                                                : op->getOperand(0).getType());
    SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
    bool isChanged = false;
    for (size_t i = 1; i < groups.size(); ++i)
      while (groups[i].size() > 1 && wide.getDimSize(groups[i].front()) == 1) {
        groups[i - 1].push_back(groups[i].front());
        groups[i].erase(groups[i].begin());
        isChanged = true;
      }
    if (!isChanged)
      return rewriter.notifyMatchFailure(op, "no such dimensions");
    rewriter.modifyOpInPlace(op, [&] {
      op.setReassociationAttr(
          getReassociationIndicesAttribute(rewriter, groups));
    });
    return success();
  }
};

struct FlattenRowsPass : fp8::impl::FlattenRowsPassBase<FlattenRowsPass> {
  using Base::Base;

  LogicalResult apply(RewritePatternSet &&patterns) {
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    return applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    RewritePatternSet raising(&getContext());
    raising.add<RaiseReshape, GroupUnitDims<tensor::CollapseShapeOp>,
                GroupUnitDims<tensor::ExpandShapeOp>>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(raising));

    MergedLoops loops(getOperation());
    Flattening::Collapsed collapsed;
    bool isChanged = false;
    for (auto [number, nest] : llvm::enumerate(loops.getNests())) {
      SmallVector<bool> merged = loops.getMerged(number);
      if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(nest.op) ||
          !llvm::is_contained(merged, true))
        continue;
      LDBG() << "on fewer dimensions: "
             << OpWithFlags(nest.op, OpPrintingFlags().skipRegions());
      Operation *op = nest.op;
      // Attributes of others say how many dimensions there are.
      if (isNamedReduction(op)) {
        rewriter.setInsertionPoint(op);
        FailureOr<linalg::GenericOp> generic =
            linalg::generalizeNamedOp(rewriter, cast<linalg::LinalgOp>(op));
        if (failed(generic))
          continue;
        op = *generic;
      }
      Flattening(rewriter, op, merged, collapsed).run();
      ++numFlattened;
      isChanged = true;
    }
    if (!isChanged)
      return;
    RewritePatternSet cleaning(&getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(cleaning,
                                                         &getContext());
    tensor::ExpandShapeOp::getCanonicalizationPatterns(cleaning, &getContext());
    linalg::FillOp::getCanonicalizationPatterns(cleaning, &getContext());
    tensor::populateFoldTensorEmptyPatterns(cleaning);
    if (failed(apply(std::move(cleaning))))
      signalPassFailure();
  }

  /// Named operations that are not elementwise, and whose copies would not be
  /// valid on fewer dimensions.
  static bool isNamedReduction(Operation *op) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    return linalgOp &&
           !isa<linalg::GenericOp, linalg::ContractOp, linalg::TransposeOp,
                linalg::BroadcastOp>(op) &&
           !llvm::all_of(linalgOp.getIndexingMapsArray(), [](AffineMap map) {
             return map.isIdentity() || map.getNumResults() == 0;
           });
  }
};

} // namespace
