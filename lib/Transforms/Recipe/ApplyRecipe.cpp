//===- ApplyRecipe.cpp - Quantize contractions as recipes say -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: contractions with names and roles. Leaves: every contraction whose
// recipe says so between quantizes and dequantizes with unresolved scales, and
// one remark for every contraction.
//
//===----------------------------------------------------------------------===//

#include "RecipeDecision.h"
#include "fp8/Analysis/GemmRoles.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "fp8/Transforms/Passes.h"
#include "fp8/Transforms/RecipeFile.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/ScopedPrinter.h"

#define DEBUG_TYPE "fp8-apply-recipe"

namespace mlir::fp8 {
#define GEN_PASS_DEF_APPLYRECIPEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

struct ApplyRecipePass : fp8::impl::ApplyRecipePassBase<ApplyRecipePass> {
  using Base::Base;
  void runOnOperation() override;

  /// The innermost attribute around `op`.
  static RecipeAttrInterface
  getRecipeAttribute(Operation *op, std::optional<AttentionRole> attention);
  RecipeAttrInterface getRecipe(Operation *op, GemmRole role,
                                std::optional<AttentionRole> attention) const;
  /// Says why one of the first or last layers stays.
  void stayForLayer(RecipeDecision &decision) const;
  /// Takes the recipe of `op`; false, with the reason, if it has none that
  /// quantizes.
  bool takeRecipe(Operation *op, RecipeDecision &decision) const;
  /// A contraction, a grouped matmul or attention, and what becomes of it.
  struct Decided {
    GroupedMatmulOp group;
    AttentionOp attention;
    FailureOr<Contraction> contraction = failure();
    RecipeDecision decision;
  };

  LogicalResult readOptions();
  /// Finds which of `ops` the recipe file keeps in high precision.
  void keepLayers(ArrayRef<Operation *> ops, const AttentionProducts &products);
  /// Decides about a contraction, a grouped matmul or attention, with a remark.
  Decided decide(Operation *op, const GemmRoles &roles,
                 const AttentionProducts &products);
  RecipeDecision decideLinalg(linalg::LinalgOp op, const GemmRoles &roles,
                              std::optional<AttentionProduct> attention,
                              FailureOr<Contraction> &contraction);
  RecipeDecision decideAttention(AttentionOp op) const;
  /// What goes with the recipe of scores, wherever that comes from.
  AttentionTransforms getTransforms(Operation *op) const;
  /// Fails if a contraction that stays in high precision had to be in FP8.
  LogicalResult checkRequired(Operation *op, const RecipeDecision &decision);
  /// Fails if a row of an invariant product would depend on others.
  LogicalResult checkInvariant(Operation *op, const RecipeDecision &decision);
  LogicalResult applyTo(FunctionOpInterface function);
  void rewrite(const Contraction &contraction, const RecipeDecision &decision);

  RecipeAttrInterface defaultRecipe, defaultOfAttention;
  AttentionTransforms defaultTransforms;
  std::optional<RecipeFile> file;
  /// Contractions that first/last-N-layers keep in high precision.
  DenseSet<Operation *> keptLayers;
};

} // namespace

//===----------------------------------------------------------------------===//
// Which recipe
//===----------------------------------------------------------------------===//

/// The recipe of `op`; null if nothing names one.
RecipeAttrInterface
ApplyRecipePass::getRecipeAttribute(Operation *op,
                                    std::optional<AttentionRole> attention) {
  for (Operation *scope = op; scope; scope = scope->getParentOp()) {
    // That of a scope is for linear layers.
    if (!attention || scope == op)
      if (auto recipe =
              scope->getAttrOfType<RecipeAttrInterface>(kRecipeAttrName))
        return recipe;
    if (!attention)
      continue;
    if (RecipeAttrInterface recipe = getAttentionRecipe(
            scope->getAttr(kAttentionRecipeAttrName), *attention))
      return recipe;
  }
  return {};
}

RecipeAttrInterface
ApplyRecipePass::getRecipe(Operation *op, GemmRole role,
                           std::optional<AttentionRole> attention) const {
  if (RecipeAttrInterface recipe = getRecipeAttribute(op, attention))
    return recipe;
  if (file) {
    std::string text = attention ? stringifyAttentionRole(*attention)
                                 : stringifyGemmRole(role).str();
    if (RecipeAttrInterface recipe =
            file->lookup(getGemmName(op), text, attention.has_value()))
      return recipe;
  }
  return attention ? defaultOfAttention : defaultRecipe;
}

//===----------------------------------------------------------------------===//
// Decide
//===----------------------------------------------------------------------===//

/// How a tensor is quantized that the program has as codes; nothing if it has
/// not.
static std::optional<OperandFormat> getGivenFormat(Value tensor) {
  auto dequantize = tensor.getDefiningOp<DequantizeOp>();
  if (!dequantize || !dequantize.getResult().getType().getElementType().isF32())
    return std::nullopt;
  ScaledType type = dequantize.getSource().getType();
  ArrayRef<int64_t> block = type.getBlock();
  if (block.empty())
    return std::nullopt;
  return OperandFormat{
      type.getElementType(), block.size() == 1 ? 1 : block[block.size() - 2],
      block.back(), type.getScaleType(), type.getHasTensorScale()};
}

void ApplyRecipePass::stayForLayer(RecipeDecision &decision) const {
  decision.stay("it is in one of the first or last layers, which the recipe "
                "file keeps in high precision",
                "lower first_layers_high_precision or "
                "last_layers_high_precision in the recipe file");
}

bool ApplyRecipePass::takeRecipe(Operation *op,
                                 RecipeDecision &decision) const {
  std::optional<AttentionRole> attention;
  if (decision.attention)
    attention = decision.attention->role;
  decision.recipe = getRecipe(op, decision.role, attention);
  if (keptLayers.contains(op))
    stayForLayer(decision);
  else if (!decision.recipe && attention)
    decision.stay("it is a product of attention, to which no recipe applies: "
                  "those of linear layers are not for it",
                  "give one as attention-recipe, in a rule with the role " +
                      stringifyAttentionRole(*attention) +
                      " in a recipe file or as attribute "
                      "fp8.attention_recipe");
  else if (!decision.recipe)
    decision.stay("no recipe applies to it",
                  "give a recipe as pass option, in a recipe file or as "
                  "attribute fp8.recipe");
  else if (decision.recipe.isHighPrecision())
    decision.stay("its recipe is none", "give it another recipe");
  return !decision.staysHighPrecision();
}

AttentionTransforms ApplyRecipePass::getTransforms(Operation *op) const {
  if (op->hasAttr(kRecipeAttrName))
    return {};
  for (Operation *scope = op; scope; scope = scope->getParentOp()) {
    Attribute attribute = scope->getAttr(kAttentionRecipeAttrName);
    if (getAttentionRecipe(attribute, AttentionRole::QK))
      return getAttentionTransforms(attribute);
  }
  std::string role = stringifyAttentionRole(AttentionRole::QK);
  if (file && file->lookup(getGemmName(op), role, /*isOfAttention=*/true))
    return file->lookupTransforms(getGemmName(op), role);
  return defaultTransforms;
}

RecipeDecision ApplyRecipePass::decideAttention(AttentionOp op) const {
  RecipeDecision decision;
  decision.recipe = getRecipe(op, GemmRole::Fprop, AttentionRole::QK);
  decision.recipeOfV = getRecipe(op, GemmRole::Fprop, AttentionRole::PV);
  decision.transforms = getTransforms(op);
  if (keptLayers.contains(op))
    stayForLayer(decision);
  fp8::decideAttention(op, decision);
  return decision;
}

/// What the operands of a gradient's product hold, where the program does not
/// say which values are gradients.
static void markGradient(RecipeDecision &decision, const GemmRoles &roles,
                         Value a, Value b) {
  if (!decision.attention || !decision.attention->gradient ||
      roles.isGradient(a) || roles.isGradient(b))
    return;
  bool isFirst = *decision.attention->gradient == 0;
  decision.role = GemmRole::Wgrad;
  decision.aKind = isFirst ? OperandKind::Gradient : OperandKind::Activation;
  decision.bKind = isFirst ? OperandKind::Activation : OperandKind::Gradient;
}

RecipeDecision
ApplyRecipePass::decideLinalg(linalg::LinalgOp op, const GemmRoles &roles,
                              std::optional<AttentionProduct> attention,
                              FailureOr<Contraction> &contraction) {
  RecipeDecision decision;
  decision.attention = attention;
  auto roleAttr = op->getAttrOfType<GemmRoleAttr>(kRoleAttrName);
  Value a = op.getDpsInputOperand(0)->get();
  Value b = op.getDpsInputOperand(1)->get();
  decision.role = roleAttr ? roleAttr.getValue() : roles.getRole(a, b);

  // Codes that the program has are multiplied as they are, whatever a recipe
  // would make of their values.
  std::optional<OperandFormat> givenA = getGivenFormat(a);
  std::optional<OperandFormat> givenB = getGivenFormat(b);
  ContractionMismatch mismatch;
  if (givenA && givenB) {
    contraction = matchContraction(op, mismatch);
    if (succeeded(contraction)) {
      decision.isGiven = true;
      decision.a = *givenA;
      decision.b = *givenB;
      return decision;
    }
  }

  if (!takeRecipe(op, decision))
    return decision;
  auto stay = [&](const Twine &reason, const Twine &suggestion) {
    decision.stay(reason, suggestion);
    return decision;
  };
  contraction = matchContraction(op, mismatch);
  if (failed(contraction))
    return stay("the contraction " + mismatch.reason, mismatch.suggestion);

  bool batched = !contraction->dims.batch.empty();
  std::tie(decision.aKind, decision.bKind) =
      roles.getOperandKinds(a, b, decision.role, batched);
  markGradient(decision, roles, a, b);
  decision.a = decision.recipe.getOperandFormat(decision.role, decision.aKind);
  decision.b = decision.recipe.getOperandFormat(decision.role, decision.bKind);
  decision.accumulate = decision.recipe.getAccumulate(decision.role);
  if (attention && attention->role == AttentionRole::QK)
    if (AttentionTransforms asked = getTransforms(op); asked.any())
      decision.leftOut =
          asked.describe() +
          ": it is for fp8.attention, and this is a product by itself";
  if (is2D(decision.a) && is2D(decision.b))
    return stay("both operands would have 2-D blocks, which no tensor core "
                "multiplies by each other",
                "use x_dim=1 and grad_dim=1");

  decision.k = contraction->getExtent(contraction->dims.k);
  decidePadding(decision, maxPadding);
  return decision;
}

//===----------------------------------------------------------------------===//
// Obey
//===----------------------------------------------------------------------===//

/// The f32 of codes.
static Value dequantizeOperand(RewriterBase &rewriter, Location loc,
                               Value codes) {
  auto type = cast<ScaledType>(codes.getType());
  return DequantizeOp::create(
      rewriter, loc,
      RankedTensorType::get(type.getShape(), rewriter.getF32Type()), codes);
}

void ApplyRecipePass::rewrite(const Contraction &contraction,
                              const RecipeDecision &decision) {
  linalg::LinalgOp op = contraction.op;
  Location loc = op.getLoc();
  IRRewriter rewriter(op);
  Value a = buildCanonicalA(rewriter, contraction);
  Value b = buildCanonicalB(rewriter, contraction);
  auto keep = [&](Operation *contract, ArrayRef<StringRef> names) {
    for (StringRef name : names)
      if (Attribute attribute = op->getAttr(name))
        contract->setAttr(name, attribute);
  };
  if (decision.isGiven) {
    CanonicalResult result =
        buildCanonicalContract(rewriter, contraction, a, b);
    keep(result.contract, {kNameAttrName, kRoleAttrName});
    rewriter.replaceOp(op, result.result);
    return;
  }
  // One amount for both: if their dynamic extents of K differ by mistake they
  // still differ afterwards, and the check at run time sees it.
  OpFoldResult amount = getPadding(rewriter, loc, decision, a);
  a = dequantizeOperand(rewriter, loc,
                        quantizeA(rewriter, loc, a, amount, decision));
  b = dequantizeOperand(rewriter, loc,
                        quantizeB(rewriter, loc, b, amount, decision));
  CanonicalResult result = buildCanonicalContract(rewriter, contraction, a, b);
  keep(result.contract, {kNameAttrName, kRecomputeAttrName});
  result.contract->setAttr(kRoleAttrName,
                           GemmRoleAttr::get(&getContext(), decision.role));
  result.contract->setAttr(kRecipeAttrName, decision.recipe);
  result.contract->setAttr(
      kOperandsAttrName,
      rewriter.getArrayAttr(
          {OperandKindAttr::get(&getContext(), decision.aKind),
           OperandKindAttr::get(&getContext(), decision.bKind)}));
  result.contract->setAttr(
      kAccumulateAttrName,
      AccumulateAttr::get(&getContext(), decision.accumulate));
  rewriter.replaceOp(op, result.result);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult ApplyRecipePass::readOptions() {
  // At the location only: nobody wants the module with it.
  auto emitError = [&] { return mlir::emitError(getOperation().getLoc()); };
  auto read = [&](StringRef text, RecipeAttrInterface &parsed) {
    parsed = {};
    if (!text.empty())
      parsed = parseRecipe(text, &getContext(), emitError);
    return success(text.empty() || parsed);
  };
  std::string ofAttention = attentionRecipe;
  auto transforms = takeAttentionTransforms(ofAttention, emitError);
  if (failed(transforms) || failed(read(recipe, defaultRecipe)) ||
      failed(read(ofAttention, defaultOfAttention)))
    return failure();
  defaultTransforms = *transforms;
  if (!(maxPadding >= 0.0))
    return emitError()
           << "expected max-padding to be a number that is not negative, "
              "but got "
           << llvm::to_string(llvm::format("%g", double(maxPadding)));
  file.reset();
  if (!recipeFile.empty()) {
    FailureOr<RecipeFile> loaded =
        RecipeFile::load(recipeFile, &getContext(), emitError);
    if (failed(loaded))
      return failure();
    file = std::move(*loaded);
  }
  return success();
}

/// The contractions, grouped matmuls and attention of a function that no recipe
/// has been applied to.
static SmallVector<Operation *> findContractions(FunctionOpInterface function) {
  SmallVector<Operation *> ops;
  function->walk([&](Operation *op) {
    // A contraction of dequantizes has been through this pass, and so has a
    // grouped matmul of codes.
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    auto grouped = dyn_cast<GroupedMatmulOp>(op);
    auto attention = dyn_cast<AttentionOp>(op);
    if ((linalgOp && isContraction(linalgOp) &&
         !op->hasAttr(kAccumulateAttrName)) ||
        (grouped && !grouped.isScaled()) ||
        (attention && !attention.isScaled()))
      ops.push_back(op);
  });
  return ops;
}

/// What `op` is to attention; of fp8.attention the first of its two roles.
static std::optional<AttentionRole>
getAttentionRole(Operation *op, const AttentionProducts &products) {
  if (isa<AttentionOp>(op))
    return AttentionRole::QK;
  std::optional<AttentionProduct> product = products.lookup(op);
  return product ? std::optional(product->role) : std::nullopt;
}

void ApplyRecipePass::keepLayers(ArrayRef<Operation *> ops,
                                 const AttentionProducts &products) {
  keptLayers.clear();
  if (!file)
    return;
  SmallVector<StringRef> names =
      llvm::map_to_vector(ops, [](Operation *op) { return getGemmName(op); });
  int64_t numLayers;
  SmallVector<int64_t> layers = getLayers(names, numLayers);
  for (auto [op, layer] : llvm::zip_equal(ops, layers))
    if (layer >= 0 && !getRecipeAttribute(op, getAttentionRole(op, products)) &&
        (layer < file->getFirstLayersHighPrecision() ||
         layer >= numLayers - file->getLastLayersHighPrecision()))
      keptLayers.insert(op);
}

static void logDecision(Operation *op, const RecipeDecision &decision) {
  if (decision.staysHighPrecision())
    LDBG() << getGemmName(op) << " stays, for " << decision.reason;
  else
    LDBG() << getGemmName(op) << ": "
           << (decision.isGiven ? StringRef("given")
                                : decision.recipe.getRecipeName())
           << ", " << describeOperand(decision.a) << " by "
           << describeOperand(decision.b);
}

ApplyRecipePass::Decided
ApplyRecipePass::decide(Operation *op, const GemmRoles &roles,
                        const AttentionProducts &products) {
  Decided decided;
  decided.group = dyn_cast<GroupedMatmulOp>(op);
  decided.attention = dyn_cast<AttentionOp>(op);
  if (GroupedMatmulOp group = decided.group) {
    auto role = op->getAttrOfType<GemmRoleAttr>(kRoleAttrName);
    decided.decision.role = role ? role.getValue() : roles.getRole(group);
    takeRecipe(op, decided.decision);
    decideGrouped(group, roles, maxPadding, decided.decision);
    remarkDecision(group, decided.decision);
  } else if (decided.attention) {
    decided.decision = decideAttention(decided.attention);
    remarkDecision(decided.attention, decided.decision);
  } else {
    auto linalgOp = cast<linalg::LinalgOp>(op);
    decided.decision =
        decideLinalg(linalgOp, roles, products.lookup(op), decided.contraction);
    remarkDecision(linalgOp, decided.decision);
  }
  logDecision(op, decided.decision);
  return decided;
}

LogicalResult ApplyRecipePass::checkRequired(Operation *op,
                                             const RecipeDecision &decision) {
  auto isOther = [](RecipeAttrInterface recipe) {
    return !recipe || recipe.isHighPrecision();
  };
  bool asked = (isOther(decision.recipe) && isOther(decision.recipeOfV)) ||
               keptLayers.contains(op);
  if (!require || asked)
    return success();
  return op->emitError("expected '")
         << getGemmName(op) << "' to be in FP8, but " << decision.reason << "; "
         << decision.suggestion;
}

LogicalResult ApplyRecipePass::checkInvariant(Operation *op,
                                              const RecipeDecision &decision) {
  // What is summed over all rows depends on them anyway.
  if (decision.isGiven || decision.role == GemmRole::Wgrad || !isInvariant(op))
    return success();
  RecipeAttrInterface ofB =
      decision.recipeOfV ? decision.recipeOfV : decision.recipe;
  for (const auto &[recipe, kind] : {std::pair{decision.recipe, decision.aKind},
                                     std::pair{ofB, decision.bKind}}) {
    std::string reason = describeOtherRows(recipe, decision.role, kind);
    if (!reason.empty())
      return op->emitError("expected '")
             << getGemmName(op) << "' to have " << reason;
  }
  return success();
}

LogicalResult ApplyRecipePass::applyTo(FunctionOpInterface function) {
  SmallVector<Operation *> ops = findContractions(function);
  // Decide everything first: roles are of the function as it came.
  GemmRoles roles(function);
  AttentionProducts products(function, roles);
  keepLayers(ops, products);
  SmallVector<Decided, 0> quantized;
  LogicalResult result = success();
  for (Operation *op : ops) {
    Decided decided = decide(op, roles, products);
    if (!decided.decision.staysHighPrecision()) {
      if (failed(checkInvariant(op, decided.decision)))
        result = failure();
      ++numQuantized;
      numPadded += decided.decision.paddedTo != 1;
      quantized.push_back(std::move(decided));
      continue;
    }
    ++numHighPrecision;
    if (failed(checkRequired(op, decided.decision)))
      result = failure();
  }
  if (failed(result))
    return failure();
  for (Decided &decided : quantized)
    if (succeeded(decided.contraction))
      rewrite(*decided.contraction, decided.decision);
  for (Decided &decided : quantized) {
    if (decided.group)
      quantizeGrouped(decided.group, decided.decision);
    if (decided.attention)
      quantizeAttention(decided.attention, decided.decision);
  }
  return success();
}

void ApplyRecipePass::runOnOperation() {
  if (failed(readOptions()))
    return signalPassFailure();
  // Also of a program without products, so that a recipe can be tried out.
  if (isInvariant(getOperation()) && defaultRecipe && !file &&
      !defaultRecipe.isHighPrecision()) {
    std::string reason = describeOtherRows(defaultRecipe, GemmRole::Fprop,
                                           OperandKind::Activation);
    if (!reason.empty()) {
      mlir::emitError(getOperation().getLoc()) << "expected " << reason;
      return signalPassFailure();
    }
  }
  SmallVector<FunctionOpInterface> functions;
  getOperation().walk(
      [&](FunctionOpInterface function) { functions.push_back(function); });
  bool fellBack = false;
  for (FunctionOpInterface function : functions)
    fellBack |= failed(applyTo(function));
  if (fellBack)
    signalPassFailure();
}
