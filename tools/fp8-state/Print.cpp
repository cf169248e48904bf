//===- Print.cpp - Show what a saved state holds ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "SavedState.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatAdapters.h"

#include <algorithm>
#include <cmath>

using namespace mlir::fp8;
using llvm::ArrayRef;
using llvm::StringRef;
namespace json = llvm::json;

using Row = std::vector<std::string>;

static std::string formatFloat(float value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.6g", value);
  return text;
}

/// The columns that hold text come first.
static void printTable(ArrayRef<Row> rows, size_t numTexts,
                       llvm::raw_ostream &os) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (const Row &row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      if (i < numTexts)
        os << llvm::left_justify(row[i], widths[i] + 2);
      else
        os << llvm::right_justify(row[i], widths[i])
           << (i + 1 < row.size() ? "  " : "");
    os << '\n';
  }
}

/// Equal neighbours as one, since most histories begin with zeros.
static void printHistory(ArrayRef<float> history, llvm::raw_ostream &os) {
  StringRef separator = " ";
  while (!history.empty()) {
    std::string text = formatFloat(history.front());
    ArrayRef<float> rest = history.drop_while(
        [&](float amax) { return formatFloat(amax) == text; });
    os << separator << text;
    if (size_t count = history.size() - rest.size(); count > 1)
      os << " (" << count << " times)";
    separator = ", ";
    history = rest;
  }
  os << '\n';
}

static void printText(const SavedState &state, ArrayRef<size_t> selected,
                      bool history, llvm::raw_ostream &os) {
  os << state.path << ": version " << *state.manifest.getInteger("version")
     << ", steps " << state.steps << ", slots " << state.slots.size() << '\n';
  // As the recipe is written.
  os << "recipe: delayed";
  for (StringRef key : kRecipeKeys) {
    const json::Value *value = state.manifest.get(key);
    os << ',' << key << '=';
    if (auto text = value->getAsString())
      os << *text;
    else
      os << *value;
  }
  os << '\n';
  if (selected.empty())
    return;

  std::vector<Row> rows = {{"slot", "format", "role", "operand", "scale",
                            "last amax", "recorded", "non-finite", "underflow",
                            "saturated"}};
  for (size_t i : selected) {
    const SavedSlot &slot = state.slots[i];
    const fp8rt_state_statistics &statistics = slot.statistics;
    rows.push_back({slot.name, slot.format, slot.role, slot.operand,
                    formatFloat(statistics.scale), formatFloat(statistics.amax),
                    std::to_string(statistics.recorded),
                    std::to_string(statistics.non_finite),
                    std::to_string(statistics.underflow),
                    std::to_string(statistics.saturated)});
  }
  printTable(rows, 4, os);
  if (!history)
    return;
  for (size_t i : selected) {
    const SavedSlot &slot = state.slots[i];
    os << slot.name << ':';
    printHistory(slot.history, os);
    if (slot.waiting != 0)
      os << slot.name << " waiting: " << formatFloat(slot.waiting) << '\n';
  }
}

/// JSON has no Inf and no NaN: these become strings.
static json::Value makeNumber(float value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : "inf";
}

static void printJSON(const SavedState &state, ArrayRef<size_t> selected,
                      llvm::raw_ostream &os) {
  json::Array slots;
  for (size_t i : selected) {
    const SavedSlot &slot = state.slots[i];
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
  }
  json::Object root = state.manifest;
  root["steps"] = state.steps;
  root["slots"] = std::move(slots);
  os << llvm::formatv("{0:2}\n", json::Value(std::move(root)));
}

llvm::Error mlir::fp8::printState(const StateOptions &options,
                                  llvm::raw_ostream &os) {
  auto state = SavedState::open(options.files[0]);
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
