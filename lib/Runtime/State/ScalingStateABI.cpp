//===- ScalingStateABI.cpp - The C interface of states --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks arguments, takes the right to use the state, and reports.
//
//===----------------------------------------------------------------------===//

#include "ScalingStateHandles.h"
#include "StructSize.h"

#include <algorithm>
#include <cmath>

using namespace fp8rt;
using namespace fp8rt::detail;

static fp8rt_status failNull(const char *argument) {
  return fail(FP8RT_ERROR_INVALID_ARGUMENT,
              "expected " + std::string(argument) + ", but got null");
}

static fp8rt_status report(const FileResult &result) {
  return result.status == FP8RT_OK ? FP8RT_OK
                                   : fail(result.status, result.message);
}

/// What of a state a function is about. A device may have the values, but never
/// the names.
enum class Part { Names, Values };

/// Runs `body` on the state that `handle` names.
template <typename Body>
static fp8rt_status withState(fp8rt_state handle, Access::Kind kind,
                              Body &&body, Part part = Part::Values) {
  return guard([&]() -> fp8rt_status {
    Access access(handle, kind);
    fp8rt_status status = access.getStatus();
    if (status == FP8RT_OK && part == Part::Values)
      status = access.checkValues();
    return status == FP8RT_OK ? body(*access) : status;
  });
}

/// Runs `body` on a state and one of its slots.
template <typename Body>
static fp8rt_status withSlot(fp8rt_state handle, Access::Kind kind,
                             const char *name, Body &&body,
                             Part part = Part::Values) {
  if (!name)
    return failNull("name");
  auto findSlot = [&](ScalingState &state) -> fp8rt_status {
    auto slot = state.slotIndex.find(name);
    if (slot == state.slotIndex.end())
      return fail(FP8RT_ERROR_NOT_FOUND, "expected the name of a slot, but got "
                                         "'" +
                                             std::string(name) + "'");
    return body(state, slot->second);
  };
  return withState(handle, kind, findSlot, part);
}

/// Only the recipe `delayed` has histories.
static fp8rt_status checkHistory(const ScalingState &state) {
  const Recipe &recipe = state.manifest.recipe;
  if (recipe.delayed)
    return FP8RT_OK;
  return fail(FP8RT_ERROR_INVALID_ARGUMENT,
              "expected a state of the recipe delayed, but got one of '" +
                  recipe.name + "', which has no amax history");
}

/// The words of delayed are an order of amaxes that no caller needs to know.
static fp8rt_status checkWords(const ScalingState &state) {
  if (!state.manifest.recipe.delayed)
    return FP8RT_OK;
  return fail(
      FP8RT_ERROR_INVALID_ARGUMENT,
      "expected a state of another recipe than delayed, whose words are "
      "its amax histories");
}

static fp8rt_status checkLength(int64_t length, int64_t expected) {
  if (length == expected)
    return FP8RT_OK;
  return fail(FP8RT_ERROR_INVALID_ARGUMENT,
              "expected length to be " + std::to_string(expected) +
                  ", but got " + std::to_string(length));
}

static fp8rt_status checkIndex(const ScalingState &state, int64_t index) {
  if (index >= 0 && static_cast<size_t>(index) < state.getNumSlots())
    return FP8RT_OK;
  return fail(FP8RT_ERROR_INVALID_ARGUMENT,
              "expected the index of one of " +
                  std::to_string(state.getNumSlots()) + " slots, but got " +
                  std::to_string(index));
}

//===----------------------------------------------------------------------===//
// Life
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_state_create(const char *text, size_t size,
                                fp8rt_state *state) {
  if (!text)
    return failNull("manifest");
  if (!state)
    return failNull("state");
  return guard([&]() -> fp8rt_status {
    Manifest manifest;
    std::string error;
    if (!parseManifest({text, size}, manifest, error))
      return fail(FP8RT_ERROR_INVALID_MANIFEST, error);
    *state = addState(std::make_unique<ScalingState>(std::move(manifest)));
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_state_create_from_file(const char *path,
                                          fp8rt_state *state) {
  if (!path)
    return failNull("path");
  if (!state)
    return failNull("state");
  return guard([&]() -> fp8rt_status {
    Manifest manifest;
    FileResult result = readManifest(path, manifest);
    if (result.status != FP8RT_OK)
      return report(result);
    auto made = std::make_unique<ScalingState>(std::move(manifest));
    result = loadState(*made, path, FP8RT_LOAD_STRICT, nullptr);
    if (result.status != FP8RT_OK)
      return report(result);
    *state = addState(std::move(made));
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_state_clone(fp8rt_state state, fp8rt_state *clone) {
  if (!clone)
    return failNull("clone");
  return withState(state, Access::Read, [&](const ScalingState &source) {
    *clone = addState(std::make_unique<ScalingState>(source));
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_state_destroy(fp8rt_state state) {
  return guard([&] { return removeState(state); });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_state_get_rows(fp8rt_state handle, fp8rt_state_rows *rows) {
  if (fp8rt_status status = checkStruct("rows", rows))
    return status;
  return withState(handle, Access::Read, [&](ScalingState &state) {
    giveStruct(rows, state.getRows());
    return FP8RT_OK;
  });
}

static fp8rt_status run(fp8rt_state handle, void (ScalingState::*method)()) {
  return withState(handle, Access::Write, [&](ScalingState &state) {
    (state.*method)();
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_state_update(fp8rt_state handle) {
  return withState(
      handle, Access::Write, [](ScalingState &state) -> fp8rt_status {
        const Recipe &recipe = state.manifest.recipe;
        if (!recipe.delayed && !state.suspended)
          return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                      "expected a state of the recipe delayed, but got one of "
                      "'" +
                          recipe.name +
                          "', whose update only its program knows: call "
                          "fp8rt_program_update_state");
        state.update();
        return FP8RT_OK;
      });
}

fp8rt_status fp8rt_state_freeze(fp8rt_state state) {
  return run(state, &ScalingState::freeze);
}

fp8rt_status fp8rt_state_unfreeze(fp8rt_state state) {
  return run(state, &ScalingState::unfreeze);
}

fp8rt_status fp8rt_state_reset(fp8rt_state state) {
  return run(state, &ScalingState::reset);
}

fp8rt_status fp8rt_state_reset_slot(fp8rt_state handle, const char *name) {
  return withSlot(handle, Access::Write, name,
                  [](ScalingState &state, size_t slot) {
                    state.resetSlot(slot);
                    return FP8RT_OK;
                  });
}

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_state_get_info(fp8rt_state handle, fp8rt_state_info *info) {
  if (fp8rt_status status = checkStruct("info", info))
    return status;
  return withState(handle, Access::Read, [&](const ScalingState &state) {
    const Recipe &recipe = state.manifest.recipe;
    const RecipeValue *reduceAmax = recipe.lookup("reduce_amax");
    giveStruct(info, {sizeof(*info), static_cast<int64_t>(state.getNumSlots()),
                      recipe.getAmaxHistoryLen(), state.steps,
                      state.suspended.has_value(),
                      !reduceAmax || *reduceAmax != RecipeValue(false),
                      state.manifestText.c_str(), state.recipeText.c_str()});
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_state_get_slot(fp8rt_state handle, int64_t index,
                                  fp8rt_state_slot *slot) {
  if (fp8rt_status status = checkStruct("slot", slot))
    return status;
  return withState(
      handle, Access::Read,
      [&](const ScalingState &state) {
        fp8rt_status status = checkIndex(state, index);
        if (status == FP8RT_OK) {
          const Slot &found = state.manifest.slots[static_cast<size_t>(index)];
          giveStruct(slot, {sizeof(*slot), found.name.c_str(),
                            stringifyFormat(found.format), found.role.c_str(),
                            found.operand.c_str()});
        }
        return status;
      },
      Part::Names);
}

fp8rt_status fp8rt_state_find_slot(fp8rt_state handle, const char *name,
                                   int64_t *index) {
  if (!index)
    return failNull("index");
  return withSlot(
      handle, Access::Read, name,
      [&](const ScalingState &, size_t slot) {
        *index = static_cast<int64_t>(slot);
        return FP8RT_OK;
      },
      Part::Names);
}

fp8rt_status fp8rt_state_rename_slot(fp8rt_state handle, const char *name,
                                     const char *newName) {
  if (!newName)
    return failNull("new_name");
  return withSlot(
      handle, Access::Write, name,
      [&](ScalingState &state, size_t slot) -> fp8rt_status {
        std::string wanted = newName;
        if (!isSlotName(wanted))
          return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                      "expected new_name to be UTF-8 and not empty");
        auto found = state.slotIndex.find(wanted);
        if (found == state.slotIndex.end())
          state.renameSlot(slot, wanted);
        else if (found->second != slot)
          return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                      "expected a name that no slot has, but got '" + wanted +
                          "'");
        return FP8RT_OK;
      },
      Part::Names);
}

fp8rt_status fp8rt_state_get_scale(fp8rt_state handle, const char *name,
                                   float *scale) {
  if (!scale)
    return failNull("scale");
  return withSlot(handle, Access::Read, name,
                  [&](const ScalingState &state, size_t slot) {
                    *scale = state.scale[slot];
                    return FP8RT_OK;
                  });
}

fp8rt_status fp8rt_state_set_scale(fp8rt_state handle, const char *name,
                                   float scale) {
  if (!std::isfinite(scale) || scale <= 0)
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected a scale that is finite and above 0, but got " +
                    std::to_string(scale));
  return withSlot(handle, Access::Write, name,
                  [&](ScalingState &state, size_t slot) {
                    state.setScale(slot, scale);
                    return FP8RT_OK;
                  });
}

fp8rt_status fp8rt_state_get_words(fp8rt_state handle, const char *name,
                                   int32_t *words, int64_t length) {
  if (!words)
    return failNull("words");
  return withSlot(
      handle, Access::Read, name, [&](const ScalingState &state, size_t slot) {
        fp8rt_status status = checkWords(state);
        if (status == FP8RT_OK)
          status = checkLength(length, state.manifest.recipe.numWords);
        if (status == FP8RT_OK)
          std::copy_n(state.getWords(slot), length, words);
        return status;
      });
}

fp8rt_status fp8rt_state_set_words(fp8rt_state handle, const char *name,
                                   const int32_t *words, int64_t length) {
  if (!words)
    return failNull("words");
  return withSlot(
      handle, Access::Write, name, [&](ScalingState &state, size_t slot) {
        fp8rt_status status = checkWords(state);
        if (status == FP8RT_OK)
          status = checkLength(length, state.manifest.recipe.numWords);
        if (status == FP8RT_OK)
          std::copy_n(words, length, state.getWords(slot));
        return status;
      });
}

fp8rt_status fp8rt_state_get_history(fp8rt_state handle, const char *name,
                                     float *history, int64_t length) {
  if (!history)
    return failNull("history");
  return withSlot(
      handle, Access::Read, name, [&](const ScalingState &state, size_t slot) {
        fp8rt_status status = checkHistory(state);
        if (status == FP8RT_OK)
          status =
              checkLength(length, state.manifest.recipe.getAmaxHistoryLen());
        if (status == FP8RT_OK)
          state.readHistory(slot, history, 1);
        return status;
      });
}

fp8rt_status fp8rt_state_set_history(fp8rt_state handle, const char *name,
                                     const float *history, int64_t length) {
  if (!history)
    return failNull("history");
  return withSlot(handle, Access::Write, name,
                  [&](ScalingState &state, size_t slot) -> fp8rt_status {
                    fp8rt_status status = checkHistory(state);
                    if (status == FP8RT_OK)
                      status = checkLength(
                          length, state.manifest.recipe.getAmaxHistoryLen());
                    if (status != FP8RT_OK)
                      return status;
                    for (int64_t i = 0; i < length; ++i)
                      if (history[i] < 0)
                        return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                                    "expected amaxes of at least 0, but got " +
                                        std::to_string(history[i]));
                    state.writeHistory(slot, history);
                    return FP8RT_OK;
                  });
}

fp8rt_status fp8rt_state_get_histories(fp8rt_state handle, float *histories,
                                       int64_t length) {
  if (!histories)
    return failNull("histories");
  return withState(handle, Access::Read, [&](const ScalingState &state) {
    size_t count = state.getNumSlots();
    fp8rt_status status = checkHistory(state);
    if (status == FP8RT_OK)
      status = checkLength(length, state.manifest.recipe.getAmaxHistoryLen() *
                                       static_cast<int64_t>(count));
    if (status == FP8RT_OK)
      for (size_t slot = 0; slot < count; ++slot)
        state.readHistory(slot, histories + slot, count);
    return status;
  });
}

fp8rt_status fp8rt_state_get_statistics(fp8rt_state handle, int64_t index,
                                        fp8rt_state_statistics *statistics) {
  if (fp8rt_status status = checkStruct("statistics", statistics))
    return status;
  return withState(handle, Access::Read, [&](const ScalingState &state) {
    fp8rt_status status = checkIndex(state, index);
    if (status == FP8RT_OK) {
      auto slot = static_cast<size_t>(index);
      const Staging &pending = state.getPending();
      giveStruct(statistics,
                 {sizeof(*statistics), state.lastAmax[slot], state.scale[slot],
                  state.scaleInv[slot], /*reserved=*/0, state.recorded[slot],
                  state.nonFinite[slot], pending.underflow[slot],
                  pending.saturated[slot]});
    }
    return status;
  });
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_state_save(fp8rt_state handle, const char *path) {
  if (!path)
    return failNull("path");
  return withState(handle, Access::Read, [&](const ScalingState &state) {
    return report(saveState(state, path));
  });
}

fp8rt_status fp8rt_state_load(fp8rt_state handle, const char *path,
                              uint32_t flags, fp8rt_load_report *loadReport) {
  if (!path)
    return failNull("path");
  if (flags & ~static_cast<uint32_t>(FP8RT_LOAD_STRICT))
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected flags to be 0 or FP8RT_LOAD_STRICT, but got " +
                    std::to_string(flags));
  if (loadReport)
    if (fp8rt_status status = checkStruct("report", loadReport))
      return status;
  return withState(handle, Access::Write, [&](ScalingState &state) {
    fp8rt_load_report made;
    fp8rt_status status = report(loadState(state, path, flags, &made));
    if (status == FP8RT_OK && loadReport)
      giveStruct(loadReport, made);
    return status;
  });
}
