//===- StateManifest.cpp - A state table for the runtime ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/StateManifest.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

std::string fp8::getStateManifest(StateTableAttr table) {
  auto recipe = cast<DelayedAttr>(table.getRecipe());
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("version", 1);
    json.attribute("amax_history_len", recipe.getAmaxHistoryLen());
    json.attribute("amax_compute_algo",
                   stringifyEnum(recipe.getAmaxComputeAlgo()));
    json.attribute("margin", recipe.getMargin());
    json.attribute("pow2", recipe.getPow2());
    json.attribute("compat", stringifyEnum(recipe.getCompat()));
    json.attribute("reduce_amax", recipe.getReduceAmax());
    json.attributeArray("slots", [&] {
      for (SlotAttr slot : table.getSlotRange())
        json.object([&] {
          json.attribute("name", slot.getName());
          json.attribute("format", isa<Float8E5M2Type>(slot.getFormat())
                                       ? "e5m2"
                                       : "e4m3");
          json.attribute("role", stringifyEnum(slot.getRole()));
          json.attribute("operand", stringifyEnum(slot.getOperand()));
          if (slot.getCache() != 0)
            json.attribute("cache", slot.getCache());
        });
    });
  });
  return text;
}
