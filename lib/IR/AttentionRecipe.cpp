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
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// In the order of the roles.
static constexpr StringLiteral keys[] = {"qk", "pv", "dp", "dv", "dq", "dk"};

static constexpr StringLiteral smoothKey = "smooth_k";
static constexpr StringLiteral hadamardKey = "hadamard";
/// A number of positions.
static constexpr StringLiteral blockKey = "block";

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

std::string AttentionTransforms::describe() const {
  SmallVector<StringRef> names;
  if (smoothK)
    names.push_back(smoothKey);
  if (hadamard)
    names.push_back(hadamardKey);
  std::string ofBlock = ("block " + Twine(block)).str();
  if (block)
    names.push_back(ofBlock);
  return llvm::join(names, ", ");
}

AttentionTransforms fp8::getAttentionTransforms(Attribute attribute) {
  AttentionTransforms transforms;
  auto recipes = dyn_cast_if_present<DictionaryAttr>(attribute);
  if (!recipes)
    return transforms;
  auto isOn = [&](StringRef key) {
    auto value = recipes.getAs<BoolAttr>(key);
    return value && value.getValue();
  };
  transforms.smoothK = isOn(smoothKey);
  transforms.hadamard = isOn(hadamardKey);
  if (auto block = recipes.getAs<IntegerAttr>(blockKey))
    transforms.block = block.getInt();
  return transforms;
}

FailureOr<AttentionTransforms> fp8::takeAttentionTransforms(
    std::string &text, llvm::function_ref<InFlightDiagnostic()> emitError) {
  AttentionTransforms transforms;
  SmallVector<StringRef> entries, left;
  StringRef(text).split(entries, ',');
  for (StringRef entry : entries) {
    auto [key, value] = entry.split('=');
    std::string name = key.trim().str();
    llvm::replace(name, '-', '_');
    value = value.trim();
    if (name == blockKey) {
      if (value.getAsInteger(10, transforms.block) || transforms.block <= 0)
        return emitError() << "expected a positive number of positions for key "
                              "'block' of attention's recipe, but got '"
                           << value << "'";
      continue;
    }
    bool isSmooth = name == smoothKey;
    if (!isSmooth && name != hadamardKey) {
      left.push_back(entry);
      continue;
    }
    if (value != "true" && value != "false")
      return emitError() << "expected true or false for key '" << name
                         << "' of attention's recipe, but got '" << value
                         << "'";
    (isSmooth ? transforms.smoothK : transforms.hadamard) = value == "true";
  }
  text = llvm::join(left, ",");
  return transforms;
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
    if (entry.getName() == smoothKey || entry.getName() == hadamardKey) {
      if (!isa<BoolAttr>(entry.getValue()))
        return emitError() << "to have true or false for '"
                           << entry.getName().getValue() << "', but got "
                           << entry.getValue();
      continue;
    }
    if (entry.getName() == blockKey) {
      auto block = dyn_cast<IntegerAttr>(entry.getValue());
      if (!block || block.getInt() <= 0)
        return emitError() << "to have a positive number of positions for "
                              "'block', but got "
                           << entry.getValue();
      continue;
    }
    if (!llvm::is_contained(keys, entry.getName()))
      return emitError() << "to have recipes of qk, pv, dp, dv, dq or dk, "
                            "smooth_k, hadamard and block, but got '"
                         << entry.getName() << "'";
    if (!isa<RecipeAttrInterface>(entry.getValue()))
      return emitError() << "to have a recipe for '" << entry.getName()
                         << "', but got " << entry.getValue();
  }
  return success();
}
