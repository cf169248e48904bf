//===- LowerDynamicExpandShape.cpp - Several unknown extents --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERDYNAMICEXPANDSHAPEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

/// Whether one dimension of the source becomes several of unknown extent, or
/// one of them and none: upstream divides by the other extents.
static bool isAmbiguous(memref::ExpandShapeOp op) {
  MemRefType type = op.getResultType();
  return llvm::any_of(op.getReassociationIndices(), [&](const auto &group) {
    auto unknown = llvm::count_if(
        group, [&](int64_t dim) { return type.isDynamicDim(dim); });
    bool isEmpty = llvm::any_of(
        group, [&](int64_t dim) { return type.getDimSize(dim) == 0; });
    return unknown > (isEmpty ? 0 : 1);
  });
}

static void lower(memref::ExpandShapeOp op) {
  IRRewriter rewriter(op);
  Location loc = op.getLoc();
  auto source =
      memref::ExtractStridedMetadataOp::create(rewriter, loc, op.getSrc());
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  SmallVector<OpFoldResult> sourceStrides = source.getConstifiedMixedStrides();
  SmallVector<OpFoldResult> strides(sizes.size());
  AffineExpr stride = rewriter.getAffineSymbolExpr(0);
  AffineExpr size = rewriter.getAffineSymbolExpr(1);
  for (auto [group, innermost] :
       llvm::zip_equal(op.getReassociationIndices(), sourceStrides)) {
    OpFoldResult next = innermost;
    for (int64_t dim : llvm::reverse(group)) {
      strides[dim] = next;
      next = affine::makeComposedFoldedAffineApply(rewriter, loc, stride * size,
                                                   {next, sizes[dim]});
    }
  }
  // Where a stride is known here but not in the type, the type decides.
  auto [typeStrides, typeOffset] = op.getResultType().getStridesAndOffset();
  auto agree = [&](OpFoldResult value, int64_t type) -> OpFoldResult {
    if (ShapedType::isDynamic(type))
      return getValueOrCreateConstantIndexOp(rewriter, loc, value);
    return rewriter.getIndexAttr(type);
  };
  for (auto [value, type] : llvm::zip_equal(strides, typeStrides))
    value = agree(value, type);
  OpFoldResult offset = agree(source.getConstifiedMixedOffset(), typeOffset);
  rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(
      op, op.getResultType(), source.getBaseBuffer(), offset, sizes, strides);
}

namespace {
struct LowerDynamicExpandShapePass
    : fp8::impl::LowerDynamicExpandShapePassBase<LowerDynamicExpandShapePass> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<memref::ExpandShapeOp> ops;
    getOperation()->walk([&](memref::ExpandShapeOp op) {
      if (isAmbiguous(op))
        ops.push_back(op);
    });
    llvm::for_each(ops, lower);
  }
};
} // namespace
