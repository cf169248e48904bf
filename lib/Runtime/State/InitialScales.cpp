//===- InitialScales.cpp - Scales of tensors that are new -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InitialScales.h"

#include "CUDA/Capture.h"

#include <algorithm>

using namespace fp8rt;
using namespace fp8rt::detail;

fp8rt_status InitialScales::find(const Access &access, const char *function,
                                 fp8rt_context *context, bool &isNeeded) {
  ScalingState &state = *access;
  isNeeded = false;
  if (!state.mayNeedInitialScale(function))
    return FP8RT_OK;
  if (context) {
    if (cuda::isCapturing(fp8rt_context_get_device(context),
                          fp8rt_context_get_stream(context)))
      return FP8RT_OK;
    InitialScales scales(access, function, context);
    if (fp8rt_status status = scales.download())
      return status;
    scales.fill();
    if (fp8rt_status status = scales.upload())
      return status;
  }
  state.visitUses(function, [&](size_t slot) {
    isNeeded |= !state.isFilled[slot] && state.isEmpty(slot);
  });
  return FP8RT_OK;
}

fp8rt_status InitialScales::download() {
  const std::unique_ptr<DeviceRows> &rows = access.getDeviceRows();
  if (!rows || !rows->isAhead())
    return FP8RT_OK;
  return rows->download(state,
                        context ? fp8rt_context_get_stream(context) : nullptr);
}

fp8rt_status InitialScales::upload() {
  fp8rt_state_rows rows;
  return uploadState(access, fp8rt_context_get_device(context),
                     fp8rt_context_get_stream(context), rows);
}

void InitialScales::fill() {
  state.visitUses(function, [&](size_t slot) {
    if (!state.isEmpty(slot))
      state.isFilled[slot] = true;
  });
}

fp8rt_status InitialScales::begin() {
  if (fp8rt_status status = download())
    return status;
  fill();
  state.visitUses(function, [&](size_t slot) {
    if (state.isFilled[slot])
      return;
    empty.push_back(slot);
    scalesBefore.push_back(state.scale[slot]);
  });
  before = state.staging;
  // Amaxes of other calls decide on no scale of this one.
  if (!empty.empty())
    std::fill(state.staging.amax.begin(), state.staging.amax.end(), 0.0f);
  return FP8RT_OK;
}

fp8rt_status InitialScales::advance(bool &again) {
  again = false;
  if (empty.empty())
    return FP8RT_OK;
  if (fp8rt_status status = download())
    return status;
  // Tensors that share a slot may go round in circles.
  if (++numCalls > empty.size())
    return FP8RT_OK;
  std::vector<float> scales;
  for (size_t slot : empty) {
    float amax = state.staging.amax[slot];
    // Without a tensor, or with zeros, any scale does.
    scales.push_back(amax == 0 ? state.scale[slot]
                               : state.getInitialScale(slot, amax));
    again |= scales.back() != state.scale[slot];
  }
  if (!again)
    return FP8RT_OK;
  for (size_t i = 0; i < empty.size(); ++i)
    state.setInitialScale(empty[i], scales[i]);
  std::fill(state.staging.amax.begin(), state.staging.amax.end(), 0.0f);
  std::copy(before.underflow.begin(), before.underflow.end(),
            state.staging.underflow.begin());
  std::copy(before.saturated.begin(), before.saturated.end(),
            state.staging.saturated.begin());
  return FP8RT_OK;
}

void InitialScales::settle(bool asBefore) {
  for (size_t i = 0; i < empty.size(); ++i) {
    size_t slot = empty[i];
    if (asBefore) {
      state.setInitialScale(slot, scalesBefore[i]);
    } else if (state.scale[slot] != 1.0f &&
               ++state.firstCalls[slot] == kMaxFirstCalls) {
      state.setInitialScale(
          slot, state.getInitialScale(slot, state.staging.amax[slot]));
      state.isFilled[slot] = true;
    }
  }
}

fp8rt_status InitialScales::end(fp8rt_status status) {
  if (!empty.empty()) {
    // A device that was lost in the call has no values any more.
    if (download() != FP8RT_OK)
      return status;
    for (size_t slot = 0; slot < state.getNumSlots(); ++slot) {
      float recorded = status == FP8RT_OK ? state.staging.amax[slot] : 0;
      state.staging.amax[slot] = makeAmax(
          std::max(getAmaxBits(before.amax[slot]), getAmaxBits(recorded)));
    }
    settle(status != FP8RT_OK || state.suspended);
  }
  // Where others look for the amaxes of the step, and graphs for scales.
  return status || !context ? status : upload();
}
