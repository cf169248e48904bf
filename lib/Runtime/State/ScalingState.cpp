//===- ScalingState.cpp - What is kept from step to step ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalingStateDetail.h"

#include "fp8/Formats.h"

#include <algorithm>

using namespace fp8rt;
using namespace fp8rt::detail;

Caches::Caches(const std::vector<Slot> &slots) {
  buffers.reserve(slots.size());
  for (const Slot &slot : slots)
    buffers.emplace_back(static_cast<size_t>(slot.cache));
  setPointers();
}

void Caches::setPointers() {
  pointers.clear();
  for (std::vector<uint8_t> &buffer : buffers)
    pointers.push_back(buffer.empty() ? nullptr : buffer.data());
}

static float getMaxFinite(Format format) {
  switch (format) {
#define FP8_CODE_FORMAT(NAME, ...)                                             \
  case Format::NAME:                                                           \
    return k##NAME.getLargest();
#include "fp8/Formats.def"
  }
  return 0;
}

ScalingState::ScalingState(Manifest source)
    : manifest(std::move(source)), manifestText(printManifest(manifest)),
      recipeText(printRecipe(manifest.recipe)), staging(getNumSlots()),
      scale(getNumSlots(), 1.0f), scaleInv(getNumSlots(), 1.0f),
      caches(manifest.slots), lastAmax(getNumSlots()), recorded(getNumSlots()),
      nonFinite(getNumSlots()), isFilled(getNumSlots()),
      firstCalls(getNumSlots()), words(getNumSlots() * getNumWords()) {
  slotIndex.reserve(getNumSlots());
  for (size_t i = 0; i < getNumSlots(); ++i) {
    const Slot &slot = manifest.slots[i];
    slotIndex.emplace(slot.name, i);
    maxFinite.push_back(getMaxFinite(slot.format));
  }
}

/// In place: the rows' addresses are promised.
template <typename T>
static void fill(std::vector<T> &values, T value) {
  std::fill(values.begin(), values.end(), value);
}

static void clear(Staging &staging) {
  fill(staging.amax, 0.0f);
  fill<int64_t>(staging.underflow, 0);
  fill<int64_t>(staging.saturated, 0);
}

void ScalingState::reset() {
  clear(staging);
  if (suspended)
    clear(*suspended);
  fill(scale, 1.0f);
  fill(scaleInv, 1.0f);
  fill(lastAmax, 0.0f);
  fill<int64_t>(recorded, 0);
  fill<int64_t>(nonFinite, 0);
  fill<AmaxBits>(words, 0);
  firstCalls.assign(getNumSlots(), 0);
  isFilled.assign(getNumSlots(), false);
  steps = 0;
}

void ScalingState::resetSlot(size_t slot) {
  for (Staging *rows : {&staging, suspended ? &*suspended : nullptr})
    if (rows) {
      rows->amax[slot] = 0;
      rows->underflow[slot] = rows->saturated[slot] = 0;
    }
  setScale(slot, 1);
  lastAmax[slot] = 0;
  recorded[slot] = nonFinite[slot] = 0;
  std::fill_n(getWords(slot), getNumWords(), 0);
}

void ScalingState::renameSlot(size_t slot, const std::string &name) {
  // What may run out of memory comes first, and changes nothing.
  Manifest renamed = manifest;
  renamed.slots[slot].name = name;
  std::string text = printManifest(renamed);
  slotIndex.emplace(name, slot);
  slotIndex.erase(manifest.slots[slot].name);
  manifest = std::move(renamed);
  manifestText = std::move(text);
}

fp8rt_state_rows ScalingState::getRows() {
  return {sizeof(fp8rt_state_rows),
          static_cast<int64_t>(getNumSlots()),
          staging.amax.data(),
          scale.data(),
          scaleInv.data(),
          staging.underflow.data(),
          staging.saturated.data(),
          caches.getPointers(),
          maxFinite.data(),
          manifest.recipe.numWords,
          getWords(0),
          lastAmax.data(),
          recorded.data(),
          nonFinite.data(),
          &steps};
}

void ScalingState::clearStaging() { clear(staging); }

void ScalingState::freeze() {
  if (suspended)
    return;
  suspended = staging;
  clear(staging);
}

void ScalingState::unfreeze() {
  if (!suspended)
    return;
  std::copy(suspended->amax.begin(), suspended->amax.end(),
            staging.amax.begin());
  std::copy(suspended->underflow.begin(), suspended->underflow.end(),
            staging.underflow.begin());
  std::copy(suspended->saturated.begin(), suspended->saturated.end(),
            staging.saturated.begin());
  suspended.reset();
}

void ScalingState::readHistory(size_t slot, float *history,
                               size_t stride) const {
  // Both orders have the oldest at 1 and go on towards newer ones; they differ
  // in what is at 0.
  size_t length = getRingLength();
  std::vector<float> past(length);
  readRing(slot, past.data(), length);
  if (manifest.recipe.isFlax()) {
    history[0] = past.back();
    past.pop_back();
  } else {
    history[0] = makeAmax(getAmaxBits(getPending().amax[slot]));
  }
  for (size_t i = 0; i < past.size(); ++i)
    history[(i + 1) * stride] = past[i];
}

void ScalingState::writeHistory(size_t slot, const float *history) {
  std::vector<float> past(history + 1,
                          history + manifest.recipe.getAmaxHistoryLen());
  if (manifest.recipe.isFlax())
    past.push_back(history[0]);
  else
    getPending().amax[slot] = makeAmax(getAmaxBits(history[0]));
  writeRing(slot, past.data(), past.size());
}
