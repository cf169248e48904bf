//===- Recipes.cpp - What the passes ask a recipe -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Attrs.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/FP8Types.h"
#include "fp8/IR/ScalarBuilder.h"
#include <charconv>

using namespace mlir;
using namespace mlir::fp8;

fp8rt::RecipeValue fp8::makeRecipeValue(Float32 value) {
  char digits[32];
  char *end =
      std::to_chars(std::begin(digits), std::end(digits), value.value).ptr;
  double number = value.value;
  (void)StringRef(digits, end - digits).getAsDouble(number);
  return number;
}

LogicalResult
fp8::verifyKeys(llvm::function_ref<InFlightDiagnostic()> emitError,
                const fp8rt::RecipeSchema &schema,
                ArrayRef<fp8rt::RecipeValue> values) {
  for (const auto &[key, value] : llvm::zip_equal(schema, values)) {
    if (isValid(key, value))
      continue;
    InFlightDiagnostic diagnostic = emitError();
    diagnostic << "expected " << key.name << " to be " << describeExpected(key)
               << ", but got ";
    if (auto *number = std::get_if<int64_t>(&value))
      diagnostic << *number;
    else if (auto *real = std::get_if<double>(&value))
      diagnostic << *real;
    else if (auto *text = std::get_if<std::string>(&value))
      diagnostic << "'" << *text << "'";
    return diagnostic;
  }
  return success();
}

Type fp8::getElementType(MLIRContext *context, Format format,
                         OperandKind operand) {
  bool isGradient = operand == OperandKind::Gradient;
  if (format == Format::E5M2 || (format == Format::Hybrid && isGradient))
    return Float8E5M2Type::get(context);
  return Float8E4M3FNType::get(context);
}

/// Gradients are what the precision of a sum shows in first: Transformer Engine
/// is fast in the forward only (module/base.py).
static Accumulate getAccumulateOf(AccumulatePolicy policy, GemmRole role) {
  bool isFast =
      policy == AccumulatePolicy::Fast ||
      (policy == AccumulatePolicy::FastFprop && role == GemmRole::Fprop);
  return isFast ? Accumulate::Fast : Accumulate::Promote;
}

bool NoneAttr::isHighPrecision() const { return true; }
OperandFormat NoneAttr::getOperandFormat(GemmRole, OperandKind) const {
  llvm_unreachable("#fp8.none quantizes nothing");
}

// torch.amax propagates NaN, Transformer Engine's kernels do not.
bool CurrentAttr::propagatesNaN() const {
  return getStyle() == ScaleStyle::TorchAO;
}
Accumulate CurrentAttr::getAccumulate(GemmRole role) const {
  return getAccumulateOf(getAccumulate(), role);
}
ScaleRuleAttrInterface CurrentAttr::getScaleRule(Type) const {
  return ScaleRuleAttr::get(getContext(),
                            {getPow2(), getAmaxEpsilon(), getStyle()});
}
OperandFormat CurrentAttr::getOperandFormat(GemmRole,
                                            OperandKind operand) const {
  return {getElementType(getContext(), getFormat(), operand),
          ScaledType::kWhole, ScaledType::kWhole,
          Float32Type::get(getContext())};
}

bool RowwiseAttr::propagatesNaN() const {
  return getStyle() == ScaleStyle::TorchAO;
}
Accumulate RowwiseAttr::getAccumulate(GemmRole role) const {
  return getAccumulateOf(getAccumulate(), role);
}
ScaleRuleAttrInterface RowwiseAttr::getScaleRule(Type) const {
  return ScaleRuleAttr::get(getContext(),
                            {getPow2(), getAmaxEpsilon(), getStyle()});
}
OperandFormat RowwiseAttr::getOperandFormat(GemmRole,
                                            OperandKind operand) const {
  return {getElementType(getContext(), getFormat(), operand), 1,
          ScaledType::kWhole, Float32Type::get(getContext())};
}

LogicalResult BlockAttr::verifyKeysTogether(
    llvm::function_ref<InFlightDiagnostic()> emitError, Format, bool, Float32,
    int64_t xDim, int64_t wDim, int64_t gradDim) {
  if ((xDim == 2) + (wDim == 2) + (gradDim == 2) > 1)
    return emitError() << "expected at most one of x_dim, w_dim and grad_dim "
                          "to be 2: no GEMM multiplies two 2-D scaled operands";
  return success();
}
int64_t BlockAttr::getContractionMultiple() const { return 128; }
ScaleRuleAttrInterface BlockAttr::getScaleRule(Type sourceType) const {
  // Transformer Engine's blockwise kernels replace an infinite scale by the
  // largest finite value of the input type.
  return ScaleRuleAttr::get(getContext(),
                            {getPow2(), getAmaxEpsilon(), ScaleStyle::TE,
                             Float32{getMaxFinite(sourceType)}});
}
OperandFormat BlockAttr::getOperandFormat(GemmRole, OperandKind operand) const {
  int64_t dim = operand == OperandKind::Activation ? getXDim()
                : operand == OperandKind::Weight   ? getWDim()
                                                   : getGradDim();
  return {getElementType(getContext(), getFormat(), operand),
          dim == 2 ? 128 : 1, 128, Float32Type::get(getContext())};
}

bool MXFP8Attr::propagatesNaN() const {
  return getNonfinite() == NonFinite::NaN;
}
int64_t MXFP8Attr::getContractionMultiple() const { return 32; }
ScaleRuleAttrInterface MXFP8Attr::getScaleRule(Type) const {
  ScaleRule rule;
  rule.mode = getMode();
  rule.nonfinite = getNonfinite();
  return ScaleRuleAttr::get(getContext(), rule);
}
OperandFormat MXFP8Attr::getOperandFormat(GemmRole, OperandKind operand) const {
  bool is2D = operand == OperandKind::Weight && getWeight_2d();
  return {getElementType(getContext(), getFormat(), operand), is2D ? 32 : 1, 32,
          Float8E8M0FNUType::get(getContext())};
}

int64_t NVFP4Attr::getContractionMultiple() const { return 16; }
ScaleRuleAttrInterface NVFP4Attr::getScaleRule(Type) const {
  return ScaleRuleAttr::get(getContext());
}
OperandFormat NVFP4Attr::getOperandFormat(GemmRole, OperandKind operand) const {
  bool is2D = operand == OperandKind::Weight && getWeight_2d();
  return {Float4E2M1FNType::get(getContext()), is2D ? 16 : 1, 16,
          Float8E4M3FNType::get(getContext()), /*hasTensorScale=*/true};
}

RecipeAttrInterface NVFP4Attr::getOperandRecipe(GemmRole,
                                                OperandKind operand) const {
  // Not the scales but the tensor is another: what rotates it says so.
  return get(getContext(), getWeight_2d() && operand == OperandKind::Weight,
             getStochasticRounding() && operand == OperandKind::Gradient,
             /*hadamard=*/false);
}
bool NVFP4Attr::roundsStochastically() const { return getStochasticRounding(); }
RecipeAttrInterface NVFP4Attr::getStateRecipe() const {
  if (!getStochasticRounding())
    return {};
  return get(getContext(), /*weight_2d=*/false, /*stochastic_rounding=*/true,
             /*hadamard=*/false);
}
int64_t NVFP4Attr::getNumWords() const { return ReadSeedOp::kNumWords; }
Value NVFP4Attr::buildUpdate(SlotUpdateBuilder &slot) const {
  Value position = slot.i32(2);
  Value steps = slot.loadWord(position);
  slot.storeWord(position, arith::AddIOp::create(slot, steps, slot.i32(1)));
  return slot.getScale();
}
std::optional<int64_t> NVFP4Attr::getHadamardSigns(GemmRole role) const {
  // Those that Transformer Engine has drawn.
  constexpr int64_t signs = 0xd7e8;
  return getHadamard() && role == GemmRole::Wgrad ? std::optional(signs)
                                                  : std::nullopt;
}

bool DelayedAttr::propagatesNaN() const {
  // jnp.max in Flax; the kernels of Transformer Engine pass over NaN.
  return getCompat() == DelayedCompat::Flax;
}
Accumulate DelayedAttr::getAccumulate(GemmRole role) const {
  return getAccumulateOf(getAccumulate(), role);
}
OperandFormat DelayedAttr::getOperandFormat(GemmRole,
                                            OperandKind operand) const {
  return {getElementType(getContext(), getFormat(), operand),
          ScaledType::kWhole, ScaledType::kWhole,
          Float32Type::get(getContext())};
}

Accumulate StaticAttr::getAccumulate(GemmRole role) const {
  return getAccumulateOf(getAccumulate(), role);
}
OperandFormat StaticAttr::getOperandFormat(GemmRole,
                                           OperandKind operand) const {
  return {getElementType(getContext(), getFormat(), operand),
          ScaledType::kWhole, ScaledType::kWhole,
          Float32Type::get(getContext())};
}
