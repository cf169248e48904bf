//===- AttentionRecipe.cpp - Recipes of attention's products --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/AttentionRecipe.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::fp8;

/// In the order of the roles.
static constexpr StringLiteral keys[] = {"qk", "pv", "dp", "dv", "dq", "dk"};

StringRef fp8::getAttentionKey(AttentionRole role) {
  return keys[static_cast<unsigned>(role)];
}

std::string fp8::stringifyAttentionRole(AttentionRole role) {
  return ("attention." + getAttentionKey(role)).str();
}

bool fp8::isGradientRole(AttentionRole role) {
  return role != AttentionRole::QK && role != AttentionRole::PV;
}

RecipeAttrInterface fp8::getAttentionRecipe(Attribute attribute,
                                            AttentionRole role) {
  if (auto recipe = dyn_cast_if_present<RecipeAttrInterface>(attribute))
    return recipe;
  auto recipes = dyn_cast_if_present<DictionaryAttr>(attribute);
  return recipes ? recipes.getAs<RecipeAttrInterface>(getAttentionKey(role))
                 : RecipeAttrInterface();
}

LogicalResult
fp8::verifyAttentionRecipe(Attribute attribute,
                           llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (isa<RecipeAttrInterface>(attribute))
    return success();
  auto recipes = dyn_cast<DictionaryAttr>(attribute);
  if (!recipes)
    return emitError() << "to be a recipe or a dictionary of recipes, but got "
                       << attribute;
  for (NamedAttribute entry : recipes) {
    if (!llvm::is_contained(keys, entry.getName()))
      return emitError() << "to have recipes of qk, pv, dp, dv, dq or dk, but "
                            "got one of '"
                         << entry.getName() << "'";
    if (!isa<RecipeAttrInterface>(entry.getValue()))
      return emitError() << "to have a recipe for '" << entry.getName()
                         << "', but got " << entry.getValue();
  }
  return success();
}
