//===- StateContents.cpp - What a scaling state holds ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateContents.h"

#include "fp8/Support/Suggestion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatAdapters.h"
#include "llvm/Support/GlobPattern.h"

#include <algorithm>

using namespace mlir::fp8;
using llvm::ArrayRef;
using llvm::StringRef;
using Row = std::vector<std::string>;

static llvm::Expected<SlotContents> readSlot(fp8rt_state state, int64_t index,
                                             int64_t historyLength, bool flax) {
  fp8rt_state_slot names;
  if (auto error = makeError(fp8rt_state_get_slot(state, index, &names)))
    return error;
  SlotContents slot{names.name, names.format, names.role, names.operand, {},
                    0,          {},           {}};
  fp8rt_state_rows rows;
  if (auto error = makeError(fp8rt_state_get_rows(state, &rows)))
    return error;
  slot.waiting = rows.amax[index];
  if (auto error =
          makeError(fp8rt_state_get_statistics(state, index, &slot.statistics)))
    return error;
  if (historyLength == 0) {
    const int32_t *words = rows.words + index * rows.num_words;
    slot.words.assign(words, words + rows.num_words);
    return slot;
  }
  slot.history.resize(historyLength);
  if (auto error = makeError(fp8rt_state_get_history(
          state, names.name, slot.history.data(), historyLength)))
    return error;
  // What comes first is the newest in Flax, and in TE what waits.
  if (flax)
    std::rotate(slot.history.begin(), slot.history.begin() + 1,
                slot.history.end());
  else
    slot.history.erase(slot.history.begin());
  return slot;
}

llvm::Expected<StateContents> StateContents::open(const std::string &path) {
  StateHandle state;
  if (auto error =
          makeError(fp8rt_state_create_from_file(path.c_str(), &state)))
    return error;
  auto contents = read(state);
  if (contents)
    contents->path = path;
  return contents;
}

llvm::Expected<StateContents> StateContents::read(fp8rt_state state) {
  fp8rt_state_info info;
  if (auto error = makeError(fp8rt_state_get_info(state, &info)))
    return error;
  auto manifest = llvm::json::parse(info.manifest);
  if (!manifest)
    return manifest.takeError();
  StateContents contents{
      "", info.steps, info.recipe, std::move(*manifest->getAsObject()), {}};
  bool flax = contents.manifest.getString("compat") == "flax";
  for (int64_t i = 0; i < info.num_slots; ++i) {
    auto slot = readSlot(state, i, info.amax_history_len, flax);
    if (!slot)
      return slot.takeError();
    contents.slots.push_back(std::move(*slot));
  }
  return contents;
}

llvm::Expected<std::vector<size_t>>
StateContents::select(StringRef glob) const {
  auto pattern = llvm::GlobPattern::create(glob);
  if (!pattern)
    return llvm::createStringError("expected a glob, but got '" + glob +
                                   "': " + llvm::toString(pattern.takeError()));
  std::vector<size_t> selected;
  for (size_t i = 0; i < slots.size(); ++i)
    if (pattern->match(slots[i].name))
      selected.push_back(i);
  if (selected.empty() && glob != "*")
    return llvm::createStringError(path + ": expected a slot '" + glob +
                                   "', but there is none" + suggest(glob));
  return selected;
}

std::string StateContents::suggest(StringRef name) const {
  return mlir::fp8::suggest(
      name, llvm::map_range(slots, [](const SlotContents &slot) {
        return StringRef(slot.name);
      }));
}

std::string mlir::fp8::formatAmax(float value) {
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

void mlir::fp8::printSlots(const StateContents &state,
                           llvm::ArrayRef<size_t> slots,
                           llvm::raw_ostream &os) {
  if (slots.empty())
    return;

  std::vector<Row> rows = {{"slot", "format", "role", "operand", "scale",
                            "last amax", "recorded", "non-finite", "underflow",
                            "saturated"}};
  for (size_t i : slots) {
    const SlotContents &slot = state.slots[i];
    const fp8rt_state_statistics &statistics = slot.statistics;
    rows.push_back({slot.name, slot.format, slot.role, slot.operand,
                    formatAmax(statistics.scale), formatAmax(statistics.amax),
                    std::to_string(statistics.recorded),
                    std::to_string(statistics.non_finite),
                    std::to_string(statistics.underflow),
                    std::to_string(statistics.saturated)});
  }
  printTable(rows, 4, os);
}
