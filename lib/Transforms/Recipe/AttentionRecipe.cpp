//===- AttentionRecipe.cpp - Quantize attention as recipes say ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecipeDecision.h"
#include "fp8/IR/FP8AttentionBackwardOp.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::fp8;

static bool isQuantized(RecipeAttrInterface recipe) {
  return recipe && !recipe.isHighPrecision();
}

static StringRef getName(RecipeAttrInterface recipe) {
  return recipe ? recipe.getRecipeName() : StringRef("none");
}

/// Whether codes are what attention multiplies: 8 bits with one f32.
static bool isOfTensor(const OperandFormat &format) {
  return format.blockRows == ScaledType::kWhole &&
         format.blockK == ScaledType::kWhole && format.scaleType.isF32() &&
         !format.hasTensorScale &&
         format.elementType.getIntOrFloatBitWidth() == 8;
}

/// Whether the numbers that codes are made of have not all been computed: what
/// lies behind a cache's last key is anything, and pages are also of others.
static bool readsUnknownKeys(AttentionOp op) {
  return op.getPageTable() || op.getKeyLengths() || op.getKeyStarts();
}

/// Whether scales follow from the largest of a tensor's numbers.
static bool isMeasured(RecipeAttrInterface recipe) {
  RecipeAttrInterface state = recipe.getStateRecipe();
  return !state || isa<StateUpdateAttrInterface>(state);
}

void fp8::decideAttention(AttentionOp op, RecipeDecision &decision) {
  RecipeAttrInterface ofQ = decision.recipe, ofV = decision.recipeOfV;
  if (decision.staysHighPrecision())
    return;
  if (!isQuantized(ofQ) && !isQuantized(ofV)) {
    if (ofQ || ofV)
      return decision.stay("its recipe is none", "give it another recipe");
    return decision.stay(
        "no recipe for attention applies to it, and those of linear layers are "
        "not for it",
        "give one as attention-recipe, in a rule with a role in a recipe file "
        "or as attribute fp8.attention_recipe");
  }
  if (!isQuantized(ofQ) || !isQuantized(ofV))
    return decision.stay("attention.qk has the recipe " + getName(ofQ) +
                             " and attention.pv " + getName(ofV) +
                             ", and its operands are codes all or none",
                         "give both a recipe");
  decision.aKind = decision.bKind = OperandKind::Activation;
  decision.a = ofQ.getOperandFormat(GemmRole::Fprop, OperandKind::Activation);
  decision.b = ofV.getOperandFormat(GemmRole::Fprop, OperandKind::Activation);
  decision.accumulate = ofV.getAccumulate(GemmRole::Fprop);
  for (const auto &[recipe, format] :
       {std::pair{ofQ, decision.a}, std::pair{ofV, decision.b}})
    if (!isOfTensor(format))
      return decision.stay("attention has 8 bits with one f32 scale for a "
                           "tensor, but " +
                               recipe.getRecipeName() + " has " +
                               describeOperand(format),
                           "use current, delayed or static for it");
  if (op.getPageTable())
    return decision.stay(
        "its keys are pages, of which each call would quantize "
        "all, whoever has them",
        "keep the cache in codes");
  if (readsUnknownKeys(op) && (isMeasured(ofQ) || isMeasured(ofV)))
    return decision.stay("its amax would be that of all keys, and those beyond "
                         "key_lengths or before key_starts are anything",
                         "use static for it");
}

/// `tensor` in codes of one factor. They are made of a matrix of rows of heads,
/// which a pass over memory has a kernel for.
static Value quantizeHeads(RewriterBase &rewriter, Location loc, Value tensor,
                           const OperandFormat &format,
                           RecipeAttrInterface recipe, StringRef name) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<ReassociationIndices> rows{{0, 1, 2}, {3}};
  Value matrix =
      tensor::CollapseShapeOp::create(rewriter, loc, tensor, rows).getResult();
  auto quantize = QuantizeOp::create(
      rewriter, loc,
      getScaledType(cast<RankedTensorType>(matrix.getType()), format), matrix,
      /*scale=*/Value(), /*scale_inv=*/Value(), /*tensor_scale_inv=*/Value(),
      recipe);
  quantize->setAttr(kNameAttrName, rewriter.getStringAttr(name));
  ScaledType scaled = getScaledType(type, format);
  auto parts = DisassembleOp::create(rewriter, loc, quantize.getResult());
  Value codes = tensor::ExpandShapeOp::create(
      rewriter, loc, type.clone(scaled.getElementType()), parts.getPayload(),
      rows, tensor::getMixedSizes(rewriter, loc, tensor));
  Value factor = tensor::ExpandShapeOp::create(
      rewriter, loc, scaled.getScaleInvType(), parts.getScaleInv(), rows);
  return AssembleOp::create(rewriter, loc, scaled, codes, factor,
                            /*tensor_scale_inv=*/Value());
}

void fp8::quantizeAttention(AttentionOp op, const RecipeDecision &decision) {
  Location loc = op.getLoc();
  IRRewriter rewriter(op);
  llvm::MapVector<std::pair<Value, RecipeAttrInterface>, Value> made;
  auto quantize = [&](Value tensor, RecipeAttrInterface recipe,
                      const OperandFormat &format, StringRef letter) {
    RecipeAttrInterface ofOperand =
        recipe.getOperandRecipe(GemmRole::Fprop, OperandKind::Activation);
    Value &codes = made[{tensor, ofOperand}];
    if (codes)
      return codes;
    std::string name = (getGemmName(op) + "." + letter).str();
    return codes =
               quantizeHeads(rewriter, loc, tensor, format, ofOperand, name);
  };
  Value q = op.getQ(), k = op.getK(), v = op.getV();
  Value codesOfQ = quantize(q, decision.recipe, decision.a, "q");
  Value codesOfK = quantize(k, decision.recipe, decision.a, "k");
  Value codesOfV = quantize(v, decision.recipeOfV, decision.b, "v");
  auto assign = [&](auto attention) {
    rewriter.modifyOpInPlace(attention, [&] {
      attention.getQMutable().assign(codesOfQ);
      attention.getKMutable().assign(codesOfK);
      attention.getVMutable().assign(codesOfV);
    });
  };
  // Straight through the rounding: the gradient is that of the codes.
  for (Operation *user : llvm::to_vector(q.getUsers()))
    if (auto backward = dyn_cast<AttentionBackwardOp>(user);
        backward && backward.getQ() == q && backward.getK() == k &&
        backward.getV() == v && user->getBlock() == op->getBlock() &&
        codesOfQ.getDefiningOp()->isBeforeInBlock(user))
      assign(backward);
  assign(op);
  op.setAccumulate(decision.accumulate);
  op->setAttr(kRecipeAttrName, decision.recipe);
}
