//===- FP8Attrs.h - Enums, scale rules and recipes --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8ATTRS_H
#define FP8_IR_FP8ATTRS_H

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Runtime/RecipeSchema.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/bit.h"
#include <limits>
#include <tuple>

#include "fp8/IR/FP8Enums.h.inc"

namespace mlir::fp8 {

/// An f32 attribute parameter that compares by its bits and prints so that it
/// parses back to the same value.
struct Float32 {
  float value;

  bool operator==(const Float32 &other) const {
    return llvm::bit_cast<uint32_t>(value) ==
           llvm::bit_cast<uint32_t>(other.value);
  }
  friend llvm::hash_code hash_value(const Float32 &f) {
    return llvm::hash_value(llvm::bit_cast<uint32_t>(f.value));
  }
  friend AsmPrinter &operator<<(AsmPrinter &printer, const Float32 &f) {
    printer.printFloat(llvm::APFloat(f.value));
    return printer;
  }
};

/// How a scale follows from an amax; the value of a ScaleRuleAttr.
struct ScaleRule {
  bool pow2 = false;
  Float32 epsilon{0.0f};
  ScaleStyle style = ScaleStyle::TE;
  Float32 overflow{std::numeric_limits<float>::max()};
  MXMode mode = MXMode::RCeil;
  NonFinite nonfinite = NonFinite::Saturate;
};

/// How a recipe quantizes one operand of a GEMM. `blockRows` and `blockK` are
/// the block's extents in the non-contracted and in the contracted dimension,
/// ScaledType::kWhole for all of it.
struct OperandFormat {
  Type elementType;
  int64_t blockRows;
  int64_t blockK;
  Type scaleType;
  bool hasTensorScale = false;
};

/// Largest finite value of the float type `type`, at most 32 bits wide.
float getMaxFinite(Type type);

/// What `format` gives a tensor that holds `operand`.
Type getElementType(MLIRContext *context, Format format, OperandKind operand);

/// A tensor of a scaling state that is ordinary tensors.
struct StateTensor {
  /// Behind `fp8.state.`.
  StringRef name;
  RankedTensorType type;
};

// What interfaces' methods take and return.
class ScalarBuilder;
class SlotUpdateBuilder;
class RecipeAttrInterface;
class ScaleRuleAttrInterface;
class StateUpdateAttrInterface;

/// Defaults of StateUpdateAttrInterface.
SmallVector<StateTensor> getWordTensors(StateUpdateAttrInterface recipe,
                                        int64_t numSlots);
SmallVector<Value> buildWordUpdate(StateUpdateAttrInterface recipe,
                                   OpBuilder &builder, Location loc,
                                   Value maxFinite, Value scale, Value amax,
                                   ValueRange state);

//===----------------------------------------------------------------------===//
// For what TableGen makes of recipes
//===----------------------------------------------------------------------===//

inline fp8rt::RecipeValue makeRecipeValue(bool value) { return value; }
inline fp8rt::RecipeValue makeRecipeValue(int64_t value) { return value; }
/// The decimal number that was written, not the f32 that it was rounded to.
fp8rt::RecipeValue makeRecipeValue(Float32 value);
inline fp8rt::RecipeValue makeRecipeValue(StringRef value) {
  return value.str();
}
template <typename Enum, typename = std::enable_if_t<std::is_enum_v<Enum>>>
fp8rt::RecipeValue makeRecipeValue(Enum value) {
  return stringifyEnum(value).str();
}

/// Whether every key of `schema` may have its value; says of the first that may
/// not what was expected.
LogicalResult verifyKeys(llvm::function_ref<InFlightDiagnostic()> emitError,
                         const fp8rt::RecipeSchema &schema,
                         ArrayRef<fp8rt::RecipeValue> values);

} // namespace mlir::fp8

template <>
struct mlir::FieldParser<mlir::fp8::Float32> {
  static FailureOr<mlir::fp8::Float32> parse(AsmParser &parser) {
    double value;
    if (parser.parseFloat(value))
      return failure();
    return mlir::fp8::Float32{static_cast<float>(value)};
  }
};

#include "fp8/IR/FP8AttrInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/IR/FP8Attrs.h.inc"

namespace mlir::fp8 {

/// Parses a recipe as users write it on a command line or in a recipe file:
/// `name[,key=value...]`, e.g. `current,format=e4m3,pow2=true`. Names are those
/// that dialects have added to this one (FP8Dialect::addRecipes). Hyphens and
/// underscores are interchangeable. Reports through `emitError` what was
/// expected and returns null on failure.
RecipeAttrInterface
parseRecipe(llvm::StringRef text, MLIRContext *context,
            llvm::function_ref<InFlightDiagnostic()> emitError);

/// The factor on the way into codes of `format`, f32, and the one on the way
/// out, of `scaleType` (f32 or f8E8M0FNU), from the f32 `amax` of a block.
std::pair<Value, Value> buildScales(ScalarBuilder &builder,
                                    ScaleRuleAttrInterface rule, Value amax,
                                    FloatType format, Type scaleType);

/// The tensor's factors where there are two levels, f32: scale = 448 M / amax
/// and scale_inv = amax / 448 M, where M is the largest of `format`, each
/// rounded for itself as Transformer Engine does, which keeps the amax.
std::pair<Value, Value> buildTensorScales(ScalarBuilder &builder, Value amax,
                                          FloatType format);

/// The other level, of a block's `amax`: the f32 factor on the way into codes
/// and the f8E4M3FN one on the way out, which `encode` makes of an f32: the
/// code and its value.
std::pair<Value, Value>
buildBlockScales(ScalarBuilder &builder, Value amax, Value tensorScale,
                 FloatType format,
                 llvm::function_ref<std::pair<Value, Value>(Value)> encode);

} // namespace mlir::fp8

#endif // FP8_IR_FP8ATTRS_H
