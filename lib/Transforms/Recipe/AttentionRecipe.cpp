//===- AttentionRecipe.cpp - Quantize attention as recipes say ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTransforms.h"
#include "RecipeDecision.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
  decideTransforms(op, decision);
}

/// `tensor` in codes of one factor. They are made of `source`, which has fewer
/// dimensions: a pass over memory has a kernel for that.
static Value quantizeHeads(RewriterBase &rewriter, Location loc, Value tensor,
                           const HeadsView &source, const OperandFormat &format,
                           RecipeAttrInterface recipe, StringRef name,
                           ArrayRef<int64_t> block) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!block.empty()) {
    Value heads = tensor::ExpandShapeOp::create(
        rewriter, loc, type, source.tensor, source.groups,
        tensor::getMixedSizes(rewriter, loc, tensor));
    auto scaled = ScaledType::get(rewriter.getContext(), type.getShape(),
                                  format.elementType, block, format.scaleType,
                                  /*hasTensorScale=*/false);
    auto quantize = QuantizeOp::create(rewriter, loc, scaled, heads,
                                       /*scale=*/Value(), /*scale_inv=*/Value(),
                                       /*tensor_scale_inv=*/Value(), recipe);
    quantize->setAttr(kNameAttrName, rewriter.getStringAttr(name));
    return quantize.getResult();
  }
  auto quantize = QuantizeOp::create(
      rewriter, loc,
      getScaledType(cast<RankedTensorType>(source.tensor.getType()), format),
      source.tensor,
      /*scale=*/Value(), /*scale_inv=*/Value(), /*tensor_scale_inv=*/Value(),
      recipe);
  quantize->setAttr(kNameAttrName, rewriter.getStringAttr(name));
  ScaledType scaled = getScaledType(type, format);
  auto parts = DisassembleOp::create(rewriter, loc, quantize.getResult());
  Value codes = tensor::ExpandShapeOp::create(
      rewriter, loc, type.clone(scaled.getElementType()), parts.getPayload(),
      source.groups, tensor::getMixedSizes(rewriter, loc, tensor));
  Value factor =
      tensor::ExpandShapeOp::create(rewriter, loc, scaled.getScaleInvType(),
                                    parts.getScaleInv(), source.groups);
  return AssembleOp::create(rewriter, loc, scaled, codes, factor,
                            /*tensor_scale_inv=*/Value());
}

/// What codes of an operand are made of. `letter` is that of its name.
static HeadsView transform(RewriterBase &rewriter, AttentionOp op, Value tensor,
                           const AttentionTransforms &transforms, char letter,
                           StringRef name) {
  Location loc = op.getLoc();
  bool smooths = transforms.smoothK && letter == 'k';
  if (!transforms.hadamard || letter == 'v')
    return smooths ? smoothKeys(rewriter, loc, tensor, op.getLayout())
                   : viewRows(rewriter, loc, tensor);
  Value source = tensor;
  if (smooths) {
    HeadsView smooth = smoothKeys(rewriter, loc, tensor, op.getLayout());
    source = tensor::ExpandShapeOp::create(
        rewriter, loc, tensor.getType(), smooth.tensor, smooth.groups,
        tensor::getMixedSizes(rewriter, loc, tensor));
  }
  HeadsView rows = viewRows(rewriter, loc, source);
  rows.tensor = rotateRows(rewriter, loc, rows.tensor,
                           /*isQuery=*/letter == 'q', name + ".rotation");
  return rows;
}

/// Gradients of rotated queries and keys become those of what they were.
static void rotateGradient(RewriterBase &rewriter, AttentionBackwardOp op,
                           StringRef name) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointAfter(op);
  Location loc = op.getLoc();
  for (auto [number, letter] : {std::pair{0, 'q'}, std::pair{1, 'k'}}) {
    Value gradient = op->getResult(number);
    HeadsView rows = viewRows(rewriter, loc, gradient);
    Operation *first = rows.tensor.getDefiningOp();
    Value rotated =
        rotateRows(rewriter, loc, rows.tensor, /*isQuery=*/letter == 'q',
                   name + ".d" + Twine(letter) + ".rotation");
    auto sizes = tensor::getMixedSizes(rewriter, loc, gradient);
    SmallPtrSet<Operation *, 4> readers{first};
    for (OpFoldResult size : sizes)
      if (auto value = dyn_cast<Value>(size))
        readers.insert(value.getDefiningOp());
    Value wide = tensor::ExpandShapeOp::create(
        rewriter, loc, gradient.getType(), rotated, rows.groups, sizes);
    rewriter.replaceUsesWithIf(gradient, wide, [&](OpOperand &use) {
      return !readers.contains(use.getOwner());
    });
  }
}

void fp8::quantizeAttention(AttentionOp op, const RecipeDecision &decision) {
  Location loc = op.getLoc();
  IRRewriter rewriter(op);
  const AttentionTransforms &transforms = decision.transforms;
  std::string prefix = (getGemmName(op) + ".").str();
  // Without transforms equal tensors have equal codes.
  using Key = std::tuple<Value, RecipeAttrInterface, char>;
  SmallVector<std::pair<Key, Value>, 3> made;
  auto quantize = [&](Value tensor, RecipeAttrInterface recipe,
                      const OperandFormat &format, char letter) -> Value {
    RecipeAttrInterface ofOperand =
        recipe.getOperandRecipe(GemmRole::Fprop, OperandKind::Activation);
    // Sums by a tensor core have one factor.
    SmallVector<int64_t, 4> block;
    if (transforms.block &&
        (letter != 'v' || decision.accumulate != Accumulate::Fast)) {
      block.assign({1, 1, 1, ScaledType::kWhole});
      block[op.getSequenceDim()] = transforms.block;
    }
    bool areAlike = !transforms.any() && !transforms.block;
    Key key{tensor, ofOperand, areAlike ? ' ' : letter};
    for (const auto &[known, codes] : made)
      if (known == key)
        return codes;
    std::string name = prefix + letter;
    HeadsView source =
        transform(rewriter, op, tensor, transforms, letter, name);
    Value codes = quantizeHeads(rewriter, loc, tensor, source, format,
                                ofOperand, name, block);
    made.push_back({key, codes});
    return codes;
  };
  SmallVector<AttentionBackwardOp> gradients = findGradients(op);
  Value codesOfQ = quantize(op.getQ(), decision.recipe, decision.a, 'q');
  Value codesOfK = quantize(op.getK(), decision.recipe, decision.a, 'k');
  Value codesOfV = quantize(op.getV(), decision.recipeOfV, decision.b, 'v');
  auto assign = [&](auto attention) {
    rewriter.modifyOpInPlace(attention, [&] {
      attention.getQMutable().assign(codesOfQ);
      attention.getKMutable().assign(codesOfK);
      attention.getVMutable().assign(codesOfV);
    });
  };
  // Straight through the rounding: the gradient is that of the codes. That of a
  // mean is 0, since those of a query's scores sum up to it.
  for (AttentionBackwardOp backward : gradients) {
    assign(backward);
    if (transforms.hadamard)
      rotateGradient(rewriter, backward, getGemmName(op));
  }
  assign(op);
  op.setAccumulate(decision.accumulate);
  op->setAttr(kRecipeAttrName, decision.recipe);
}
