//===- StateManifest.cpp - A state table for the runtime ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/StateManifest.h"
#include "fp8/IR/Formats.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

std::string fp8::getStateManifest(StateTableAttr table, DictionaryAttr uses) {
  RecipeAttrInterface recipe = table.getRecipe();
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("version", 1);
    json.attribute("recipe", recipe.getRecipeName());
    json.attribute("words", table.getUpdate().getNumWords());
    for (const auto &[key, value] :
         llvm::zip_equal(recipe.getSchema(), recipe.getSettings()))
      if (key.inState)
        std::visit([&, name = key.name](
                       const auto &known) { json.attribute(name, known); },
                   value);
    json.attributeArray("slots", [&] {
      for (SlotAttr slot : table.getSlotRange())
        json.object([&] {
          json.attribute("name", slot.getName());
          json.attribute("format", getFormatName(slot.getFormat()));
          json.attribute("role", stringifyEnum(slot.getRole()));
          json.attribute("operand", stringifyEnum(slot.getOperand()));
          if (slot.getCache() != 0)
            json.attribute("cache", slot.getCache());
        });
    });
    if (!uses)
      return;
    json.attributeObject("uses", [&] {
      for (NamedAttribute function : uses)
        json.attributeArray(function.getName(), [&] {
          for (int64_t slot :
               cast<DenseI64ArrayAttr>(function.getValue()).asArrayRef())
            json.value(slot);
        });
    });
  });
  return text;
}
