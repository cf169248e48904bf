//===- Edit.cpp - Write a changed state -----------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What makes up a state comes from its manifest: one without some slots, or
// with another length, is made first, and takes over what the file has for it.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "StateContents.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir::fp8;
namespace json = llvm::json;

/// The names of the slots that one of `globs` names.
static llvm::Expected<llvm::StringSet<>>
selectAll(const StateContents &state, llvm::ArrayRef<std::string> globs) {
  llvm::StringSet<> names;
  for (const std::string &glob : globs) {
    auto selected = state.select(glob);
    if (!selected)
      return selected.takeError();
    for (size_t i : *selected)
      names.insert(state.slots[i].name);
  }
  return names;
}

static llvm::Expected<std::string> makeManifest(const StateContents &source,
                                                const StateOptions &options) {
  auto removed = selectAll(source, options.removals);
  if (!removed)
    return removed.takeError();
  json::Object manifest = source.manifest;
  json::Array kept;
  for (const json::Value &slot : *manifest.getArray("slots"))
    if (!removed->contains(*slot.getAsObject()->getString("name")))
      kept.push_back(slot);
  if (kept.empty() && !source.slots.empty())
    return llvm::createStringError(source.path +
                                   ": expected to keep a slot, but "
                                   "'--remove=' names all of them");
  manifest["slots"] = std::move(kept);
  if (options.amaxHistoryLen && !manifest.get("amax_history_len"))
    return llvm::createStringError(
        source.path +
        ": expected a state of the recipe delayed for "
        "'--amax-history-len=', but got one of " +
        *manifest.getString("recipe"));
  if (options.amaxHistoryLen)
    manifest["amax_history_len"] = *options.amaxHistoryLen;
  return llvm::formatv("{0}", json::Value(std::move(manifest))).str();
}

/// The error of a call that got the name of a slot.
static llvm::Error makeSlotError(fp8rt_status status,
                                 const StateContents &source,
                                 llvm::StringRef name) {
  llvm::Error error = makeError(status);
  if (status != FP8RT_ERROR_NOT_FOUND)
    return error;
  return llvm::createStringError(source.path + ": " +
                                 llvm::toString(std::move(error)) +
                                 source.suggest(name));
}

static llvm::Error editSlots(const StateContents &source, fp8rt_state state,
                             const StateOptions &options) {
  auto reset = selectAll(source, options.resets);
  if (!reset)
    return reset.takeError();
  for (const auto &entry : *reset) {
    std::string name = entry.getKey().str();
    if (auto error = makeSlotError(fp8rt_state_reset_slot(state, name.c_str()),
                                   source, name))
      return error;
  }
  for (const auto &[name, scale] : options.scales)
    if (auto error = makeSlotError(
            fp8rt_state_set_scale(state, name.c_str(), scale), source, name))
      return error;
  for (const auto &[oldName, newName] : options.renamings)
    if (auto error = makeSlotError(
            fp8rt_state_rename_slot(state, oldName.c_str(), newName.c_str()),
            source, oldName))
      return error;
  return llvm::Error::success();
}

llvm::Error mlir::fp8::editState(const StateOptions &options) {
  const std::string &path = options.files[0];
  auto source = StateContents::open(path);
  if (!source)
    return source.takeError();
  auto manifest = makeManifest(*source, options);
  if (!manifest)
    return manifest.takeError();
  StateHandle state;
  if (auto error = makeError(
          fp8rt_state_create(manifest->data(), manifest->size(), &state)))
    return error;
  if (auto error = makeError(fp8rt_state_load(state, path.c_str(), 0, nullptr)))
    return error;
  if (llvm::Error error = editSlots(*source, state, options))
    return error;
  return makeError(fp8rt_state_save(state, options.out.c_str()));
}
