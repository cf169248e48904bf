//===- AttentionTransforms.cpp - Before queries and keys are codes --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All of it is plain operations: a rotation is a product with a constant, whose
// epilogue quantizes, and means are taken away in the pass that quantizes.
//
//===----------------------------------------------------------------------===//

#include "AttentionTransforms.h"
#include "RecipeDecision.h"
#include "fp8/IR/FP8Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::fp8;

using BodyBuilder = llvm::function_ref<Value(OpBuilder &, ValueRange)>;

static Value widen(OpBuilder &b, Location loc, Value value) {
  return value.getType().isF32()
             ? value
             : arith::ExtFOp::create(b, loc, b.getF32Type(), value).getResult();
}

static Value narrow(OpBuilder &b, Location loc, Value value, Type type) {
  return type.isF32()
             ? value
             : arith::TruncFOp::create(b, loc, type, value).getResult();
}

static Value makeGeneric(OpBuilder &b, Location loc, ValueRange inputs,
                         Value init, ArrayRef<AffineMap> maps,
                         ArrayRef<utils::IteratorType> iterators,
                         BodyBuilder build) {
  return linalg::GenericOp::create(
             b, loc, init.getType(), inputs, init, maps, iterators,
             [&](OpBuilder &inner, Location, ValueRange arguments) {
               linalg::YieldOp::create(inner, loc, build(inner, arguments));
             })
      .getResult(0);
}

static Value makeZeros(OpBuilder &b, Location loc,
                       ArrayRef<OpFoldResult> sizes) {
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

HeadsView fp8::viewRows(OpBuilder &b, Location loc, Value heads) {
  SmallVector<ReassociationIndices> rows{{0, 1, 2}, {3}};
  return {tensor::CollapseShapeOp::create(b, loc, heads, rows), rows};
}

HeadsView fp8::smoothKeys(OpBuilder &b, Location loc, Value keys,
                          AttentionLayout layout) {
  SmallVector<ReassociationIndices> groups{{0}, {1}, {2, 3}};
  if (layout == AttentionLayout::BHSD)
    groups = {{0, 1}, {2}, {3}};
  Value tensor = tensor::CollapseShapeOp::create(b, loc, keys, groups);
  Type element = getElementTypeOrSelf(tensor);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  AffineMap all = b.getMultiDimIdentityMap(3);
  AffineMap ofMeans = all.dropResult(1);
  auto parallel = utils::IteratorType::parallel;
  Value sums = makeGeneric(
      b, loc, tensor, makeZeros(b, loc, {sizes[0], sizes[2]}), {all, ofMeans},
      {parallel, utils::IteratorType::reduction, parallel},
      [&](OpBuilder &inner, ValueRange arguments) -> Value {
        return arith::AddFOp::create(inner, loc, arguments[1],
                                     widen(inner, loc, arguments[0]));
      });
  Value count = getValueOrCreateConstantIndexOp(b, loc, sizes[1]);
  count = arith::IndexCastOp::create(b, loc, b.getI64Type(), count);
  count = arith::SIToFPOp::create(b, loc, b.getF32Type(), count);
  Value room = tensor::EmptyOp::create(b, loc, sizes, element);
  Value smooth =
      makeGeneric(b, loc, {tensor, sums}, room, {all, ofMeans, all},
                  {parallel, parallel, parallel},
                  [&](OpBuilder &inner, ValueRange arguments) {
                    Value mean =
                        arith::DivFOp::create(inner, loc, arguments[1], count);
                    Value less = arith::SubFOp::create(
                        inner, loc, widen(inner, loc, arguments[0]), mean);
                    return narrow(inner, loc, less, element);
                  });
  return {smooth, groups};
}

/// How many neighbouring columns are rotated together.
static int64_t getRotatedSize(int64_t columns) { return columns & -columns; }

/// Element (i, j) is the factor with the sign of popcount(i & j), within blocks
/// of neighbours.
static DenseElementsAttr makeMatrix(int64_t columns, FloatType element,
                                    bool isQuery) {
  int64_t size = getRotatedSize(columns);
  int64_t bits = llvm::countr_zero(static_cast<uint64_t>(size));
  // A power of two is exact, which a root of 128 is not; both together are
  // 1 / size.
  int64_t exponent = isQuery ? bits / 2 : bits - bits / 2;
  SmallVector<APFloat> elements;
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      bool isInside = i / size == j / size;
      bool isNegative =
          llvm::popcount(static_cast<uint64_t>(i & j & (size - 1))) % 2;
      APFloat value(isInside ? std::ldexp(isNegative ? -1.0 : 1.0, -exponent)
                             : 0.0);
      bool unused;
      value.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                    &unused);
      elements.push_back(value);
    }
  return DenseElementsAttr::get(
      RankedTensorType::get({columns, columns}, element), elements);
}

Value fp8::rotateRows(OpBuilder &b, Location loc, Value rows, bool isQuery,
                      const Twine &name) {
  auto type = cast<RankedTensorType>(rows.getType());
  auto element = cast<FloatType>(type.getElementType());
  Value matrix = arith::ConstantOp::create(
      b, loc, makeMatrix(type.getDimSize(1), element, isQuery));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, rows);
  Value zeros = makeZeros(b, loc, sizes);
  auto product = linalg::MatmulOp::create(
      b, loc, zeros.getType(), ValueRange{rows, matrix}, ValueRange{zeros});
  product->setAttr(kNameAttrName, b.getStringAttr(name));
  product->setAttr(kRecipeAttrName, NoneAttr::get(b.getContext()));
  if (element.isF32())
    return product.getResult(0);
  AffineMap map = b.getMultiDimIdentityMap(2);
  auto parallel = utils::IteratorType::parallel;
  return makeGeneric(b, loc, product.getResult(0),
                     tensor::EmptyOp::create(b, loc, sizes, element),
                     {map, map}, {parallel, parallel},
                     [&](OpBuilder &inner, ValueRange arguments) {
                       return narrow(inner, loc, arguments[0], element);
                     });
}

SmallVector<AttentionBackwardOp> fp8::findGradients(AttentionOp op) {
  SmallVector<AttentionBackwardOp> gradients;
  for (Operation *user : op.getQ().getUsers()) {
    auto backward = dyn_cast<AttentionBackwardOp>(user);
    if (backward && backward.getQ() == op.getQ() &&
        backward.getK() == op.getK() && backward.getV() == op.getV() &&
        user->getBlock() == op->getBlock() && op->isBeforeInBlock(user))
      gradients.push_back(backward);
  }
  return gradients;
}

/// Why keys of `op` cannot be smooth; empty if they can.
static StringRef findReason(AttentionOp op) {
  if (op.getCap())
    return "a cap bends scores themselves, not their differences";
  if (op.getSinks())
    return "a sink is a score of no key, which would not change with the "
           "others";
  if (op.getKeyLengths() || op.getKeyStarts())
    return "the mean would be that of all keys, and those beyond key_lengths "
           "or before key_starts are anything";
  SmallVector<AttentionBackwardOp> gradients = findGradients(op);
  Value lse = op.getLse();
  bool isUsed = lse && llvm::any_of(lse.getUsers(), [&](Operation *user) {
                  return !llvm::is_contained(
                      gradients, dyn_cast<AttentionBackwardOp>(user));
                });
  if (isUsed)
    return "logarithms of sums, which it changes, are used elsewhere";
  if (llvm::any_of(gradients, [&](AttentionBackwardOp each) {
        return each.getLse() != lse;
      }))
    return "a gradient has other logarithms of sums";
  return "";
}

/// Why blocks of positions have no factors of their own; empty if they may.
static StringRef findReasonOfBlock(AttentionOp op,
                                   const RecipeDecision &decision) {
  if (decision.recipe.getStateRecipe() || decision.recipeOfV.getStateRecipe())
    return "scales of other steps are of tensors: other tokens are in a block "
           "then";
  return findGradients(op).empty() ? ""
                                   : "its gradient has a factor for a tensor";
}

void fp8::decideTransforms(AttentionOp op, RecipeDecision &decision) {
  AttentionTransforms &transforms = decision.transforms;
  auto leave = [&](bool &transform, StringRef name, StringRef reason) {
    transform = false;
    decision.leftOut += decision.leftOut.empty() ? "" : "; ";
    decision.leftOut += (name + ": " + reason).str();
  };
  if (StringRef reason = findReason(op); transforms.smoothK && !reason.empty())
    leave(transforms.smoothK, "smooth_k", reason);
  if (StringRef reason = findReasonOfBlock(op, decision);
      transforms.block && !reason.empty()) {
    bool none = false;
    transforms.block = 0;
    leave(none, "block", reason);
  }
  int64_t columns = AttentionOp::getShapeOf(op.getQ())[3];
  if (transforms.hadamard &&
      (ShapedType::isDynamic(columns) || getRotatedSize(columns) == 1))
    leave(transforms.hadamard, "hadamard",
          "columns are of an odd number, or of one that is not known");
}
