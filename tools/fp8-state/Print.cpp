//===- Print.cpp - Show what a saved state holds --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "StateContents.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir::fp8;
using llvm::ArrayRef;
using llvm::StringRef;
namespace json = llvm::json;

/// Equal neighbours as one, since most histories begin with zeros.
static void printHistory(ArrayRef<float> history, llvm::raw_ostream &os) {
  StringRef separator = " ";
  while (!history.empty()) {
    float first = history.front();
    ArrayRef<float> rest = history.drop_while([&](float amax) {
      return amax == first || (std::isnan(amax) && std::isnan(first));
    });
    os << separator << formatAmax(first);
    if (size_t count = history.size() - rest.size(); count > 1)
      os << " (" << count << " times)";
    separator = ", ";
    history = rest;
  }
  os << '\n';
}

/// What only the recipe knows the meaning of.
static void printWords(ArrayRef<int32_t> words, llvm::raw_ostream &os) {
  StringRef separator = " ";
  for (int32_t word : words) {
    os << separator << llvm::format_hex(static_cast<uint32_t>(word), 10);
    separator = ", ";
  }
  os << '\n';
}

static void printText(const StateContents &state, ArrayRef<size_t> selected,
                      bool history, llvm::raw_ostream &os) {
  os << state.path << ": version " << *state.manifest.getInteger("version")
     << ", steps " << state.steps << ", slots " << state.slots.size() << '\n';
  os << "recipe: " << state.recipe << '\n';
  printSlots(state, selected, os);
  if (!history)
    return;
  for (size_t i : selected) {
    const SlotContents &slot = state.slots[i];
    os << slot.name << ':';
    if (slot.words.empty())
      printHistory(slot.history, os);
    else
      printWords(slot.words, os);
    if (slot.waiting != 0)
      os << slot.name << " waiting: " << formatAmax(slot.waiting) << '\n';
  }
}

/// JSON has no Inf and no NaN: these become strings.
static json::Value makeNumber(float value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : "inf";
}

static void printJSON(const StateContents &state, ArrayRef<size_t> selected,
                      llvm::raw_ostream &os) {
  json::Array slots;
  for (size_t i : selected) {
    const SlotContents &slot = state.slots[i];
    const fp8rt_state_statistics &statistics = slot.statistics;
    json::Array history;
    for (float amax : slot.history)
      history.push_back(makeNumber(amax));
    slots.push_back(json::Object{
        {"name", slot.name},
        {"format", slot.format},
        {"role", slot.role},
        {"operand", slot.operand},
        {"scale", makeNumber(statistics.scale)},
        {"scale_inv", makeNumber(statistics.scale_inv)},
        {"last_amax", makeNumber(statistics.amax)},
        {"amax", makeNumber(slot.waiting)},
        {"amax_history", std::move(history)},
        {"recorded", statistics.recorded},
        {"non_finite", statistics.non_finite},
        {"underflow", statistics.underflow},
        {"saturated", statistics.saturated},
    });
    if (!slot.words.empty()) {
      slots.back().getAsObject()->erase("amax_history");
      (*slots.back().getAsObject())["words"] = json::Array(slot.words);
    }
  }
  json::Object root = state.manifest;
  root["steps"] = state.steps;
  root["slots"] = std::move(slots);
  os << llvm::formatv("{0:2}\n", json::Value(std::move(root)));
}

llvm::Error mlir::fp8::printState(const StateOptions &options,
                                  llvm::raw_ostream &os) {
  auto state = StateContents::open(options.files[0]);
  if (!state)
    return state.takeError();
  auto selected = state->select(options.slots);
  if (!selected)
    return selected.takeError();
  if (options.json)
    printJSON(*state, *selected, os);
  else
    printText(*state, *selected, options.history, os);
  return llvm::Error::success();
}
