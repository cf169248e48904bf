//===- RecipeCasts.cpp - Operands of contractions to codes ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecipeDecision.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

OpFoldResult fp8::getPadding(RewriterBase &rewriter, Location loc,
                             const RecipeDecision &decision, Value a) {
  int64_t last = cast<RankedTensorType>(a.getType()).getRank() - 1;
  OpFoldResult extent = ShapedType::isDynamic(decision.k)
                            ? tensor::getMixedSize(rewriter, loc, a, last)
                            : OpFoldResult(rewriter.getIndexAttr(decision.k));
  AffineExpr k = rewriter.getAffineSymbolExpr(0);
  return affine::makeComposedFoldedAffineApply(
      rewriter, loc, k.ceilDiv(decision.paddedTo) * decision.paddedTo - k,
      {extent});
}

Value fp8::padK(RewriterBase &rewriter, Location loc, Value tensor,
                OpFoldResult amount) {
  if (isZeroInteger(amount))
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t last = type.getRank() - 1;
  SmallVector<OpFoldResult> low(type.getRank(), rewriter.getIndexAttr(0));
  SmallVector<OpFoldResult> high = low;
  high[last] = amount;
  SmallVector<int64_t> shape(type.getShape());
  std::optional<int64_t> constant = getConstantIntValue(amount);
  shape[last] = constant && !type.isDynamicDim(last) ? shape[last] + *constant
                                                     : ShapedType::kDynamic;
  Value zero = arith::ConstantOp::create(
      rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(rewriter, loc, type.clone(shape), tensor, low,
                               high, zero);
}

ScaledType fp8::getScaledType(RankedTensorType type,
                              const OperandFormat &format) {
  // A batch dimension is one more row index, unless one scale serves all.
  bool perTensor = format.blockRows == ScaledType::kWhole &&
                   format.blockK == ScaledType::kWhole;
  SmallVector<int64_t> block(type.getRank(),
                             perTensor ? ScaledType::kWhole : 1);
  block[type.getRank() - 2] = format.blockRows;
  block[type.getRank() - 1] = format.blockK;
  return ScaledType::get(type.getContext(), type.getShape(), format.elementType,
                         block, format.scaleType, format.hasTensorScale);
}

static Value quantizeOperand(RewriterBase &rewriter, Location loc, Value tensor,
                             OpFoldResult amount,
                             const RecipeDecision &decision,
                             const OperandFormat &format, OperandKind kind) {
  tensor = padK(rewriter, loc, tensor, amount);
  RecipeAttrInterface recipe = decision.recipe;
  if (std::optional<int64_t> signs = recipe.getHadamardSigns(decision.role))
    tensor = HadamardOp::create(rewriter, loc, tensor, *signs);
  auto type = cast<RankedTensorType>(tensor.getType());
  return QuantizeOp::create(rewriter, loc, getScaledType(type, format), tensor,
                            /*scale=*/Value(), /*scale_inv=*/Value(),
                            /*tensor_scale_inv=*/Value(),
                            recipe.getOperandRecipe(decision.role, kind));
}

Value fp8::quantizeA(RewriterBase &rewriter, Location loc, Value tensor,
                     OpFoldResult amount, const RecipeDecision &decision) {
  return quantizeOperand(rewriter, loc, tensor, amount, decision, decision.a,
                         decision.aKind);
}

Value fp8::quantizeB(RewriterBase &rewriter, Location loc, Value tensor,
                     OpFoldResult amount, const RecipeDecision &decision) {
  return quantizeOperand(rewriter, loc, tensor, amount, decision, decision.b,
                         decision.bKind);
}
