//===- FP8Attrs.cpp - Enums, scale rules and states -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Attrs.h"
#include "fp8/IR/FP8Types.h"
#include "fp8/IR/Formats.h"
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

LogicalResult ScaleRuleAttr::verify(EmitError emitError, bool, Float32 epsilon,
                                    ScaleStyle, Float32, MXMode, NonFinite) {
  if (!(epsilon.value >= 0.0f) ||
      epsilon.value > std::numeric_limits<float>::max())
    return emitError()
           << "expected epsilon to be a finite number of at least 0";
  return success();
}

LogicalResult SlotAttr::verify(EmitError emitError, StringRef name, Type format,
                               GemmRole, OperandKind, int64_t cache) {
  if (name.empty())
    return emitError() << "expected a slot to have a name";
  if (!isCodeType(format))
    return emitError() << "expected the format of slot '" << name << "' to be "
                       << listCodeTypes() << ", but got " << format;
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
