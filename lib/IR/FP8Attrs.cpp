//===- FP8Attrs.cpp - Enums, scale rules and recipes ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Attrs.h"
#include "fp8/IR/FP8Types.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

#include "fp8/IR/FP8Enums.cpp.inc"

#include "fp8/IR/FP8AttrInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/IR/FP8Attrs.cpp.inc"

void FP8Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp8/IR/FP8Attrs.cpp.inc"
      >();
}

float fp8::getMaxFinite(Type type) {
  return llvm::APFloat::getLargest(cast<FloatType>(type).getFloatSemantics())
      .convertToFloat();
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

static LogicalResult verifyEpsilon(EmitError emitError, Float32 epsilon) {
  if (!(epsilon.value >= 0.0f) ||
      epsilon.value > std::numeric_limits<float>::max())
    return emitError() << "expected amax_epsilon to be finite and not negative";
  return success();
}

LogicalResult ScaleRuleAttr::verify(EmitError emitError, bool, Float32 epsilon,
                                    ScaleStyle, Float32, MXMode, NonFinite) {
  return verifyEpsilon(emitError, epsilon);
}

LogicalResult CurrentAttr::verify(EmitError emitError, Format, bool,
                                  Float32 epsilon, ScaleStyle, Accumulate) {
  return verifyEpsilon(emitError, epsilon);
}

LogicalResult RowwiseAttr::verify(EmitError emitError, Format, bool,
                                  Float32 epsilon, ScaleStyle, Accumulate) {
  return verifyEpsilon(emitError, epsilon);
}

LogicalResult BlockAttr::verify(EmitError emitError, Format, bool,
                                Float32 epsilon, int64_t xDim, int64_t wDim,
                                int64_t gradDim) {
  if (failed(verifyEpsilon(emitError, epsilon)))
    return failure();
  int64_t twoD = 0;
  for (auto [name, dim] : {std::pair<StringRef, int64_t>{"x_dim", xDim},
                           {"w_dim", wDim},
                           {"grad_dim", gradDim}}) {
    if (dim != 1 && dim != 2)
      return emitError() << "expected " << name << " to be 1 or 2, but got "
                         << dim;
    twoD += dim == 2;
  }
  if (twoD > 1)
    return emitError() << "expected at most one of x_dim, w_dim and grad_dim "
                          "to be 2: no GEMM multiplies two 2-D scaled operands";
  return success();
}

LogicalResult GemmConfigAttr::verify(EmitError emitError, int64_t tileM,
                                     int64_t tileN, int64_t stages,
                                     int64_t consumers, GemmSchedule schedule,
                                     int64_t group, int64_t splitK, bool swapAB,
                                     GemmStore store, int64_t cluster) {
  bool pingPong = schedule == GemmSchedule::PingPong;
  int64_t rows = swapAB ? tileN : tileM, cols = swapAB ? tileM : tileN;
  StringRef rowsName = swapAB ? "tile_n" : "tile_m";
  StringRef colsName = swapAB ? "tile_m" : "tile_n";
  // gemm_config_c3, first: the others divide by these.
  for (auto [name, value, low, high] :
       {std::tuple<StringRef, int64_t, int64_t, int64_t>{"stages", stages, 2,
                                                         16},
        {"consumers", consumers, 1, 3},
        {"group", group, 1, 64},
        {"split_k", splitK, 1, 64},
        {"cluster", cluster, 1, 2}})
    if (value < low || value > high)
      return emitError() << "expected " << name << " to be in " << low << ".."
                         << high << ", but got " << value;
  // gemm_config_c4
  if (pingPong && consumers != 2)
    return emitError() << "expected 2 consumers with ping_pong, but got "
                       << consumers;
  if (pingPong && (splitK != 1 || swapAB))
    return emitError() << "expected neither split_k nor swap_ab with ping_pong";
  // gemm_config_c1
  int64_t slice = 64 * (pingPong ? 1 : consumers);
  if (rows < slice || rows > 256 || rows % slice != 0)
    return emitError() << "expected " << rowsName << " to be a multiple of "
                       << slice << " up to 256, but got " << rows;
  // gemm_config_c2
  if (cols < 8 || cols > 256 || cols % 8 != 0)
    return emitError() << "expected " << colsName
                       << " to be a multiple of 8 up to 256, but got " << cols;
  // gemm_config_c5
  if (swapAB && store != GemmStore::Direct)
    return emitError() << "expected store = direct with swap_ab";
  // gemm_config_c6
  if (cluster == 2 && splitK != 1)
    return emitError() << "expected no split_k with cluster";
  if (cluster == 2 && cols % 16 != 0)
    return emitError() << "expected " << colsName
                       << " to be a multiple of 16 with cluster, but got "
                       << cols;
  return success();
}

LogicalResult DelayedAttr::verify(EmitError emitError, Format,
                                  int64_t historyLen, AmaxComputeAlgo algo,
                                  int64_t margin, bool, DelayedCompat compat,
                                  bool, Accumulate) {
  if (historyLen < 1 || historyLen > 65536)
    return emitError()
           << "expected amax_history_len to be in 1..65536, but got "
           << historyLen;
  if (margin < -64 || margin > 64)
    return emitError() << "expected margin to be in -64..64, but got "
                       << margin;
  if (compat == DelayedCompat::Flax &&
      (margin != 0 || algo != AmaxComputeAlgo::Max))
    return emitError() << "expected margin = 0 and amax_compute_algo = max "
                          "with compat = flax, which knows no other";
  return success();
}

LogicalResult StaticAttr::verify(EmitError emitError, StringRef state, Format,
                                 Accumulate) {
  if (state.empty())
    return emitError() << "expected state to be the path of a saved state";
  return success();
}

LogicalResult SlotAttr::verify(EmitError emitError, StringRef name, Type format,
                               GemmRole, OperandKind, int64_t cache) {
  if (name.empty())
    return emitError() << "expected a slot to have a name";
  if (!isa<Float8E4M3FNType, Float8E5M2Type>(format))
    return emitError() << "expected the format of slot '" << name
                       << "' to be f8E4M3FN or f8E5M2, but got " << format;
  if (cache < 0)
    return emitError() << "expected the cache of slot '" << name
                       << "' to have a size, but got " << cache;
  return success();
}

LogicalResult StateTableAttr::verify(EmitError emitError,
                                     RecipeAttrInterface recipe,
                                     ArrayAttr slots) {
  if (!recipe.isStateful())
    return emitError() << "expected a recipe with state, but got " << recipe;
  llvm::StringSet<> names;
  for (Attribute attribute : slots) {
    auto slot = dyn_cast<SlotAttr>(attribute);
    if (!slot)
      return emitError() << "expected slots to be #fp8.slot, but got "
                         << attribute;
    if (!names.insert(slot.getName()).second)
      return emitError() << "expected one slot with the name '"
                         << slot.getName() << "', but got several";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Recipes
//===----------------------------------------------------------------------===//

/// What `format` gives a tensor that holds `operand`.
static Type getElementType(MLIRContext *context, Format format,
                           OperandKind operand) {
  bool isGradient = operand == OperandKind::Gradient;
  if (format == Format::E5M2 || (format == Format::Hybrid && isGradient))
    return Float8E5M2Type::get(context);
  return Float8E4M3FNType::get(context);
}

StringRef NoneAttr::getRecipeName() const { return getMnemonic(); }
bool NoneAttr::isHighPrecision() const { return true; }
ScaleRule NoneAttr::getScaleRule(Type) const { return {}; }
OperandFormat NoneAttr::getOperandFormat(GemmRole, OperandKind) const {
  llvm_unreachable("#fp8.none quantises nothing");
}

StringRef CurrentAttr::getRecipeName() const { return getMnemonic(); }
// torch.amax propagates NaN, Transformer Engine's kernels do not.
bool CurrentAttr::propagatesNaN() const {
  return getStyle() == ScaleStyle::TorchAO;
}
Accumulate CurrentAttr::getAccumulate(GemmRole) const {
  return getAccumulate();
}
ScaleRule CurrentAttr::getScaleRule(Type) const {
  return {getPow2(), getAmaxEpsilon(), getStyle()};
}
OperandFormat CurrentAttr::getOperandFormat(GemmRole,
                                            OperandKind operand) const {
  return {getElementType(getContext(), getFormat(), operand),
          ScaledType::kWhole, ScaledType::kWhole,
          Float32Type::get(getContext())};
}

StringRef RowwiseAttr::getRecipeName() const { return getMnemonic(); }
bool RowwiseAttr::propagatesNaN() const {
  return getStyle() == ScaleStyle::TorchAO;
}
Accumulate RowwiseAttr::getAccumulate(GemmRole) const {
  return getAccumulate();
}
ScaleRule RowwiseAttr::getScaleRule(Type) const {
  return {getPow2(), getAmaxEpsilon(), getStyle()};
}
OperandFormat RowwiseAttr::getOperandFormat(GemmRole,
                                            OperandKind operand) const {
  return {getElementType(getContext(), getFormat(), operand), 1,
          ScaledType::kWhole, Float32Type::get(getContext())};
}

StringRef BlockAttr::getRecipeName() const { return getMnemonic(); }
int64_t BlockAttr::getContractionMultiple() const { return 128; }
ScaleRule BlockAttr::getScaleRule(Type sourceType) const {
  // Transformer Engine's blockwise kernels replace an infinite scale by the
  // largest finite value of the input type.
  return {getPow2(), getAmaxEpsilon(), ScaleStyle::TE,
          Float32{getMaxFinite(sourceType)}};
}
OperandFormat BlockAttr::getOperandFormat(GemmRole, OperandKind operand) const {
  int64_t dim = operand == OperandKind::Activation ? getXDim()
                : operand == OperandKind::Weight   ? getWDim()
                                                   : getGradDim();
  return {getElementType(getContext(), getFormat(), operand),
          dim == 2 ? 128 : 1, 128, Float32Type::get(getContext())};
}

StringRef MXFP8Attr::getRecipeName() const { return getMnemonic(); }
bool MXFP8Attr::propagatesNaN() const {
  return getNonfinite() == NonFinite::NaN;
}
int64_t MXFP8Attr::getContractionMultiple() const { return 32; }
ScaleRule MXFP8Attr::getScaleRule(Type) const {
  ScaleRule rule;
  rule.mode = getMode();
  rule.nonfinite = getNonfinite();
  return rule;
}
OperandFormat MXFP8Attr::getOperandFormat(GemmRole, OperandKind operand) const {
  bool is2D = operand == OperandKind::Weight && getWeight_2d();
  return {getElementType(getContext(), getFormat(), operand), is2D ? 32 : 1, 32,
          Float8E8M0FNUType::get(getContext())};
}

StringRef NVFP4Attr::getRecipeName() const { return getMnemonic(); }
int64_t NVFP4Attr::getContractionMultiple() const { return 16; }
ScaleRule NVFP4Attr::getScaleRule(Type) const { return {}; }
OperandFormat NVFP4Attr::getOperandFormat(GemmRole, OperandKind operand) const {
  bool is2D = operand == OperandKind::Weight && getWeight_2d();
  return {Float4E2M1FNType::get(getContext()), is2D ? 16 : 1, 16,
          Float8E4M3FNType::get(getContext()), /*hasTensorScale=*/true};
}

StringRef DelayedAttr::getRecipeName() const { return getMnemonic(); }
RecipeAttrInterface DelayedAttr::getStateRecipe() const {
  return DelayedAttr::get(getContext(), Format::Hybrid, getAmaxHistoryLen(),
                          getAmaxComputeAlgo(), getMargin(), getReduceAmax(),
                          getCompat(), getPow2(), Accumulate::Promote);
}
bool DelayedAttr::recordsAmax() const { return true; }
bool DelayedAttr::propagatesNaN() const {
  // jnp.max in Flax; the kernels of Transformer Engine pass over NaN.
  return getCompat() == DelayedCompat::Flax;
}
Accumulate DelayedAttr::getAccumulate(GemmRole) const {
  return getAccumulate();
}
ScaleRule DelayedAttr::getScaleRule(Type) const {
  ScaleRule rule;
  rule.pow2 = getPow2();
  return rule;
}
OperandFormat DelayedAttr::getOperandFormat(GemmRole,
                                            OperandKind operand) const {
  return {getElementType(getContext(), getFormat(), operand),
          ScaledType::kWhole, ScaledType::kWhole,
          Float32Type::get(getContext())};
}

StringRef StaticAttr::getRecipeName() const { return getMnemonic(); }
RecipeAttrInterface StaticAttr::getStateRecipe() const {
  return StaticAttr::get(getContext(), getState(), Format::Hybrid,
                         Accumulate::Promote);
}
Accumulate StaticAttr::getAccumulate(GemmRole) const { return getAccumulate(); }
ScaleRule StaticAttr::getScaleRule(Type) const { return {}; }
OperandFormat StaticAttr::getOperandFormat(GemmRole,
                                           OperandKind operand) const {
  return {getElementType(getContext(), getFormat(), operand),
          ScaledType::kWhole, ScaledType::kWhole,
          Float32Type::get(getContext())};
}
