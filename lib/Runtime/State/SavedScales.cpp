//===- SavedScales.cpp - Scales of a saved state --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/SavedScales.h"
#include "ScalingStateDetail.h"
#include "fp8/Runtime/ScalingState.h"

#include <exception>
#include <utility>

using namespace fp8rt;
using namespace fp8rt::detail;

bool fp8rt::readSavedScales(const std::string &path,
                            std::vector<SavedScale> &scales,
                            std::string &error) try {
  Manifest manifest;
  FileResult result = readManifest(path, manifest);
  if (result.status != FP8RT_OK) {
    error = std::move(result.message);
    return false;
  }
  ScalingState state(std::move(manifest));
  result = loadState(state, path, FP8RT_LOAD_STRICT, nullptr);
  if (result.status != FP8RT_OK) {
    error = std::move(result.message);
    return false;
  }
  scales.clear();
  for (size_t i = 0; i < state.getNumSlots(); ++i) {
    const Slot &slot = state.manifest.slots[i];
    scales.push_back({slot.name, stringifyFormat(slot.format), state.scale[i],
                      state.scaleInv[i], state.recorded[i]});
  }
  return true;
} catch (const std::exception &exception) {
  error = path + ": " + exception.what();
  return false;
}
