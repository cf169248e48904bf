//===- SavedState.cpp - A state from a file ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SavedState.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <algorithm>

using namespace mlir::fp8;
using llvm::StringRef;

llvm::Error mlir::fp8::makeError(fp8rt_status status) {
  if (status == FP8RT_OK)
    return llvm::Error::success();
  return llvm::createStringError(fp8rt_get_last_error());
}

static llvm::Expected<SavedSlot> readSlot(fp8rt_state state, int64_t index,
                                          int64_t historyLength, bool flax) {
  fp8rt_state_slot names;
  if (auto error = makeError(fp8rt_state_get_slot(state, index, &names)))
    return error;
  SavedSlot slot{names.name, names.format, names.role, names.operand, {}, 0,
                 {}};
  fp8rt_state_rows rows;
  if (auto error = makeError(fp8rt_state_get_rows(state, &rows)))
    return error;
  slot.waiting = rows.amax[index];
  if (auto error =
          makeError(fp8rt_state_get_statistics(state, index, &slot.statistics)))
    return error;
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

llvm::Expected<SavedState> SavedState::open(const std::string &path) {
  StateHandle state;
  if (auto error =
          makeError(fp8rt_state_create_from_file(path.c_str(), &state)))
    return error;
  fp8rt_state_info info;
  if (auto error = makeError(fp8rt_state_get_info(state, &info)))
    return error;
  auto manifest = llvm::json::parse(info.manifest);
  if (!manifest)
    return manifest.takeError();
  SavedState saved{path, info.steps, std::move(*manifest->getAsObject()), {}};
  bool flax = saved.manifest.getString("compat") == "flax";
  for (int64_t i = 0; i < info.num_slots; ++i) {
    auto slot = readSlot(state, i, info.amax_history_len, flax);
    if (!slot)
      return slot.takeError();
    saved.slots.push_back(std::move(*slot));
  }
  return saved;
}

llvm::Expected<std::vector<size_t>> SavedState::select(StringRef glob) const {
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

std::string SavedState::suggest(StringRef name) const {
  const SavedSlot *nearest = nullptr;
  // Further away, it would be another name and not a misspelt one.
  unsigned limit = std::max<unsigned>(2, name.size() / 3);
  for (const SavedSlot &slot : slots) {
    unsigned distance =
        name.edit_distance(slot.name, /*AllowReplacements=*/true, limit);
    if (distance > limit || (nearest && distance == limit))
      continue;
    limit = distance;
    nearest = &slot;
  }
  return nearest ? "; did you mean '" + nearest->name + "'?" : "";
}
