//===- RaiseConvolutions.cpp - Convolutions that are matrix products ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-raise-convolutions"

namespace mlir::fp8 {
#define GEN_PASS_DEF_RAISECONVOLUTIONSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// A dimension of the image that is read at `tile` * `stride` + `window`.
struct Cut {
  unsigned tile, window;
  int64_t stride, numTiles, extent;
};
} // namespace

/// Matches `expr`, loop * stride + loop, with windows that do not overlap.
static std::optional<Cut> matchCut(AffineExpr expr, ArrayRef<int64_t> ranges) {
  auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!sum || sum.getKind() != AffineExprKind::Add)
    return std::nullopt;
  for (auto [step, inner] : {std::pair{sum.getLHS(), sum.getRHS()},
                             std::pair{sum.getRHS(), sum.getLHS()}}) {
    auto window = dyn_cast<AffineDimExpr>(inner);
    int64_t stride = 1;
    if (auto product = dyn_cast<AffineBinaryOpExpr>(step)) {
      auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
      if (product.getKind() != AffineExprKind::Mul || !factor)
        continue;
      stride = factor.getValue();
      step = product.getLHS();
    }
    auto tile = dyn_cast<AffineDimExpr>(step);
    if (!window || !tile)
      continue;
    int64_t numTiles = ranges[tile.getPosition()];
    int64_t extent = ranges[window.getPosition()];
    if (ShapedType::isDynamic(numTiles) || numTiles == 0 ||
        (extent != stride && extent != 1))
      continue;
    return Cut{tile.getPosition(), window.getPosition(), stride, numTiles,
               extent};
  }
  return std::nullopt;
}

/// The image's part that windows read, each dimension that is cut as tiles and
/// what is in them.
static Value buildTiles(RewriterBase &rewriter, Location loc, Value image,
                        ArrayRef<std::optional<Cut>> cuts) {
  auto type = cast<RankedTensorType>(image.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, image);
  SmallVector<OpFoldResult> offsets(sizes.size(), rewriter.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), rewriter.getIndexAttr(1));
  SmallVector<OpFoldResult> tiled;
  SmallVector<int64_t> shape(type.getShape()), tiledShape;
  SmallVector<ReassociationIndices> reassociation;
  for (auto [dim, cut] : llvm::enumerate(cuts)) {
    int64_t first = tiledShape.size();
    if (!cut) {
      reassociation.push_back({first});
      tiled.push_back(sizes[dim]);
      tiledShape.push_back(shape[dim]);
      continue;
    }
    shape[dim] = cut->numTiles * cut->extent;
    sizes[dim] = rewriter.getIndexAttr(shape[dim]);
    if (cut->extent == 1)
      strides[dim] = rewriter.getIndexAttr(cut->stride);
    reassociation.push_back({first, first + 1});
    for (int64_t extent : {cut->numTiles, cut->extent}) {
      tiled.push_back(rewriter.getIndexAttr(extent));
      tiledShape.push_back(extent);
    }
  }
  if (ArrayRef<int64_t>(shape) != type.getShape())
    image = tensor::ExtractSliceOp::create(rewriter, loc, type.clone(shape),
                                           image, offsets, sizes, strides);
  return tensor::ExpandShapeOp::create(rewriter, loc, type.clone(tiledShape),
                                       image, reassociation, tiled);
}

/// Whether the filters have a loop of their own, as those of a depthwise
/// convolution do not.
static bool hasColumns(linalg::LinalgOp op, AffineMap image,
                       AffineMap filters) {
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel &&
        filters.isFunctionOfDim(loop) && !image.isFunctionOfDim(loop))
      return true;
  return false;
}

static LogicalResult raise(RewriterBase &rewriter, linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || !isContraction(op) ||
      !op.hasPureTensorSemantics() ||
      !llvm::all_of(op->getOperandTypes(), [](Type type) {
        return isa<Float32Type, BFloat16Type, Float16Type>(
            getElementTypeOrSelf(type));
      }))
    return rewriter.notifyMatchFailure(op, "not a contraction of floats");
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (maps[0].isProjectedPermutation() || !maps[1].isProjectedPermutation() ||
      !maps[2].isProjectedPermutation() || !hasColumns(op, maps[0], maps[1]))
    return rewriter.notifyMatchFailure(op, "not a convolution by many filters");
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<std::optional<Cut>> cuts;
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : maps[0].getResults()) {
    if (isa<AffineDimExpr>(expr)) {
      cuts.push_back(std::nullopt);
      exprs.push_back(expr);
      continue;
    }
    std::optional<Cut> cut = matchCut(expr, ranges);
    if (!cut)
      return rewriter.notifyMatchFailure(op, "windows overlap, have holes or "
                                             "are of unknown extent");
    cuts.push_back(cut);
    exprs.push_back(rewriter.getAffineDimExpr(cut->tile));
    exprs.push_back(rewriter.getAffineDimExpr(cut->window));
  }
  rewriter.setInsertionPoint(op);
  Value image =
      buildTiles(rewriter, op.getLoc(), op.getDpsInputOperand(0)->get(), cuts);
  maps[0] = AffineMap::get(op.getNumLoops(), 0, exprs, op.getContext());
  auto product = linalg::GenericOp::create(
      rewriter, op.getLoc(), op->getResultTypes(),
      ValueRange{image, op.getDpsInputOperand(1)->get()},
      ValueRange{op.getDpsInitOperand(0)->get()}, maps,
      op.getIteratorTypesArray());
  rewriter.cloneRegionBefore(op->getRegion(0), product.getRegion(),
                             product.getRegion().begin());
  for (StringRef name :
       {kNameAttrName, kRoleAttrName, kRecipeAttrName, kRecomputeAttrName})
    if (Attribute value = op->getDiscardableAttr(name))
      product->setAttr(name, value);
  rewriter.replaceOp(op, product);
  return success();
}

namespace {
struct RaiseConvolutionsPass
    : fp8::impl::RaiseConvolutionsPassBase<RaiseConvolutionsPass> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops) {
      LDBG() << "looking at " << op->getName();
      if (succeeded(raise(rewriter, op)))
        ++numRaised;
    }
  }
};
} // namespace
