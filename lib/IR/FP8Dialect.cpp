//===- FP8Dialect.cpp - The fp8 dialect -----------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/AttentionRecipe.h"
#include "fp8/IR/ExactMath.h"
#include "fp8/IR/FP8AttentionBackwardOp.h"
#include "fp8/IR/FP8Attrs.h"
#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/FP8QuantizedAttentionOp.h"
#include "fp8/IR/FP8Types.h"
#include "fp8/IR/FoldedReads.h"
#include "fp8/Support/Suggestion.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace mlir::fp8;

#include "fp8/IR/FP8Dialect.cpp.inc"

namespace {
/// No operation depends on the function that it stands in: those on scaling
/// state name the state and the slot. So all may be inlined.
struct FP8InlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

template <typename Attr>
static void addIfRecipe(FP8Dialect &dialect) {
  if constexpr (std::is_base_of_v<RecipeAttrInterface::Trait<Attr>, Attr>)
    dialect.addRecipes<Attr>();
}

/// Adds those that are recipes, in the order in which they are defined.
template <typename... Attrs>
static void addRecipesAmong(FP8Dialect &dialect) {
  (addIfRecipe<Attrs>(dialect), ...);
}

void FP8Dialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "fp8/IR/FP8Ops.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fp8/IR/FP8AttentionBackwardOp.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fp8/IR/FP8QuantizedAttentionOp.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fp8/IR/FP8CollectiveOps.cpp.inc"
      >();
  addInterfaces<FP8InlinerInterface>();
  addRecipesAmong<
#define GET_ATTRDEF_LIST
#include "fp8/IR/FP8Attrs.cpp.inc"
      >(*this);
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

/// The attributes in the dialect's table.
static constexpr StringLiteral attributeNames[] = {
    kRecipeAttrName,     kRoleAttrName,          kNameAttrName,
    kGradAttrName,       kWeightAttrName,        kFirstMicrobatchAttrName,
    kRecomputeAttrName,  kSlotsAttrName,         kAccumulateAttrName,
    kOperandsAttrName,   kStateAttrName,         kStateUpdateAttrName,
    kStatsSlotsAttrName, kStateManifestAttrName, kTilesAttrName,
    kSaveAttrName,       kSavedAttrName,         kStateUsesAttrName,
    kFoldedAttrName,     kInvariantAttrName,     kExactAttrName,
    kRoughAttrName,      kAmaxGroupAttrName,     kAttentionRecipeAttrName,
    kArrangedAttrName};

/// Whether an operation, or one around it, has an attribute.
static bool isWithin(Operation *op, StringRef name) {
  for (; op; op = op->getParentOp())
    if (op->hasAttr(name))
      return true;
  return false;
}

bool fp8::isInvariant(Operation *op) {
  return isWithin(op, kInvariantAttrName);
}

bool fp8::hasExactMath(Operation *op) { return isWithin(op, kExactAttrName); }

/// Checks the name and the type of one of the attributes in the dialect's
/// table. A name that is not there would be a wish that nobody hears.
static LogicalResult verifyAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (!llvm::is_contained(attributeNames, name))
    return op->emitOpError("expected an attribute of the fp8 dialect, but got "
                           "'")
           << name << '\'' << suggest(name, attributeNames);
  if (name == kRecipeAttrName && !isa<RecipeAttrInterface>(value))
    return op->emitOpError("expected '")
           << name << "' to be a recipe, e.g. #fp8.current, but got " << value;
  if (name == kAttentionRecipeAttrName)
    return verifyAttentionRecipe(value, [&] {
      InFlightDiagnostic diagnostic = op->emitOpError("expected '");
      diagnostic << name << "' ";
      return diagnostic;
    });
  if (name == kRoleAttrName && !isa<GemmRoleAttr>(value))
    return op->emitOpError("expected '")
           << name << "' to be #fp8.role<fprop>, #fp8.role<dgrad> or "
           << "#fp8.role<wgrad>, but got " << value;
  if ((name == kNameAttrName || name == kSaveAttrName ||
       name == kSavedAttrName) &&
      !isa<StringAttr>(value))
    return op->emitOpError("expected '")
           << name << "' to be a string, but got " << value;
  if ((name == kGradAttrName || name == kWeightAttrName ||
       name == kRecomputeAttrName || name == kFirstMicrobatchAttrName ||
       name == kFoldedAttrName || name == kInvariantAttrName ||
       name == kExactAttrName || name == kRoughAttrName) &&
      !isa<UnitAttr>(value))
    return op->emitOpError("expected '")
           << name << "' to be a unit attribute, but got " << value;
  if (name == kAmaxGroupAttrName) {
    auto group = dyn_cast<StringAttr>(value);
    if (!group || group.empty() || group.getValue().contains('\0'))
      return op->emitOpError("expected '")
             << name << "' to be the name of a group, but got " << value;
  }
  if (name == kOperandsAttrName) {
    auto kinds = dyn_cast<ArrayAttr>(value);
    if (!kinds || kinds.size() != 2 ||
        !llvm::all_of(kinds, llvm::IsaPred<OperandKindAttr>))
      return op->emitOpError("expected '")
             << name << "' to be two of #fp8.operand, but got " << value;
  }
  if (name == kStateManifestAttrName && !isa<StringAttr>(value))
    return op->emitOpError("expected '")
           << name << "' to be a string, but got " << value;
  if (name == kStateAttrName && !isa<StateTableAttr>(value))
    return op->emitOpError("expected '")
           << name << "' to be a #fp8.state_table, but got " << value;
  if (name == kStateUpdateAttrName && !isa<SymbolRefAttr>(value))
    return op->emitOpError("expected '")
           << name << "' to be a symbol, but got " << value;
  if (name == kStateUsesAttrName) {
    auto uses = dyn_cast<DictionaryAttr>(value);
    if (!uses || !llvm::all_of(uses, [](NamedAttribute entry) {
          return isa<DenseI64ArrayAttr>(entry.getValue());
        }))
      return op->emitOpError("expected '")
             << name
             << "' to have an array of slots for each function, but got "
             << value;
  }
  if (name == kArrangedAttrName) {
    auto version = dyn_cast<IntegerAttr>(value);
    if (!version || version.getValue() != kArrangedVersion)
      return op->emitOpError("expected '")
             << name << "' to be the version " << kArrangedVersion
             << ", but got " << value;
  }
  if (name == kSlotsAttrName) {
    auto text = dyn_cast<StringAttr>(value);
    if (!text || !llvm::is_contained({"separate", "shared"}, text.getValue()))
      return op->emitOpError("expected '")
             << name << "' to be \"separate\" or \"shared\", but got " << value;
  }
  return success();
}

/// Whether values of `type` may have codes, which are bytes in later phases,
/// and rows.
static bool mayBeArranged(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank() || shaped.getRank() < 2)
    return false;
  Type element = shaped.getElementType();
  return isa<Float4E2M1FNType, Float8E4M3FNType>(element) ||
         element.isInteger(8);
}

/// Nobody looks for arranged codes but at a function's arguments.
static LogicalResult verifyNotArranged(Operation *op,
                                       NamedAttribute attribute) {
  if (attribute.getName() == kArrangedAttrName)
    return op->emitOpError("expected '")
           << kArrangedAttrName << "' on an argument of a function alone";
  return success();
}

LogicalResult FP8Dialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  return failed(verifyAttribute(op, attribute))
             ? failure()
             : verifyNotArranged(op, attribute);
}

LogicalResult FP8Dialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned argument,
                                                   NamedAttribute attribute) {
  if (failed(verifyAttribute(op, attribute)))
    return failure();
  if (attribute.getName() != kArrangedAttrName)
    return success();
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return verifyNotArranged(op, attribute);
  Type type = function.getArgumentTypes()[argument];
  if (!mayBeArranged(type))
    return op->emitOpError("expected '")
           << kArrangedAttrName
           << "' on a tensor of f4E2M1FN or f8E4M3FN with two dimensions or "
              "more, but got "
           << type;
  return success();
}

LogicalResult
FP8Dialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                        NamedAttribute attribute) {
  return failed(verifyAttribute(op, attribute))
             ? failure()
             : verifyNotArranged(op, attribute);
}
