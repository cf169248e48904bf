//===- GroupedRecipe.cpp - Quantize grouped matmuls as recipes say --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecipeDecision.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

void fp8::decideGrouped(GroupedMatmulOp op, const GemmRoles &roles,
                        double maxPadding, RecipeDecision &decision) {
  Value a = op.getA(), b = op.getB();
  auto role = op->getAttrOfType<GemmRoleAttr>(kRoleAttrName);
  decision.role = role ? role.getValue() : roles.getRole(op);
  if (decision.staysHighPrecision())
    return;
  std::tie(decision.aKind, decision.bKind) =
      roles.getOperandKinds(a, b, decision.role, /*batched=*/false);
  decision.a = decision.recipe.getOperandFormat(decision.role, decision.aKind);
  decision.b = decision.recipe.getOperandFormat(decision.role, decision.bKind);
  decision.accumulate = decision.recipe.getAccumulate(decision.role);
  if (decision.a.blockRows > 1 && !op.sumsGroups() && !op.isMasked())
    return decision.stay("rows of different groups would share a factor",
                         "use x_dim=1 and grad_dim=1");
  if (is2D(decision.a) && is2D(decision.b))
    return decision.stay("both operands would have 2-D blocks, which no tensor "
                         "core multiplies by each other",
                         "use x_dim=1 and grad_dim=1");
  // Groups begin anywhere, also within 16 tokens.
  if (op.sumsGroups() && decision.recipe.getHadamardSigns(decision.role))
    return decision.stay("a Hadamard transform would mix tokens of different "
                         "groups",
                         "use hadamard=false for it");
  int64_t k = op.getShapeOfA().back();
  decision.k = ShapedType::isDynamic(k) ? op.getShapeOfB().back() : k;
  decidePadding(decision, maxPadding);
}

/// An operand with K last.
static Value buildWithKLast(RewriterBase &rewriter, Location loc, Value operand,
                            bool isTransposed) {
  if (!isTransposed)
    return operand;
  auto type = cast<RankedTensorType>(operand.getType());
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, operand);
  std::swap(sizes.back(), sizes[sizes.size() - 2]);
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
  return linalg::TransposeOp::create(rewriter, loc, operand, empty, permutation)
      ->getResult(0);
}

void fp8::quantizeGrouped(GroupedMatmulOp op, const RecipeDecision &decision) {
  Location loc = op.getLoc();
  IRRewriter rewriter(op);
  MLIRContext *context = op.getContext();
  Value a = buildWithKLast(rewriter, loc, op.getA(), op.getTransposeA());
  Value b = buildWithKLast(rewriter, loc, op.getB(), op.getTransposeB());
  OpFoldResult amount = getPadding(rewriter, loc, decision, a);
  a = quantizeA(rewriter, loc, a, amount, decision);
  b = quantizeB(rewriter, loc, b, amount, decision);
  rewriter.modifyOpInPlace(op, [&] {
    op.getAMutable().assign(a);
    op.getBMutable().assign(b);
    op.setTransposeA(false);
    op.setTransposeB(false);
    op.setAccumulate(decision.accumulate);
    op->setAttr(kRoleAttrName, GemmRoleAttr::get(context, decision.role));
    op->setAttr(kRecipeAttrName, decision.recipe);
    op->setAttr(
        kOperandsAttrName,
        rewriter.getArrayAttr({OperandKindAttr::get(context, decision.aKind),
                               OperandKindAttr::get(context, decision.bKind)}));
  });
}
