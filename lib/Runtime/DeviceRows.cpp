//===- DeviceRows.cpp - The rows of a state on a device -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceRows.h"

#include "ScalingStateHandles.h"

#include "fp8/Runtime/Memory.h"

#include <algorithm>

using namespace fp8rt;
using namespace fp8rt::detail;

/// What the device's bulk copies ask of a tensor's address, and more than any
/// vector access does.
static constexpr size_t kAlignment = 256;

static size_t alignTo(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

DeviceRows::DeviceRows(const ScalingState &state, int32_t device)
    : device(device), numSlots(state.getNumSlots()),
      size(getWrittenBytes() + getScaleBytes()), written(getWrittenBytes()) {}

fp8rt_status DeviceRows::create(const ScalingState &state, int32_t device,
                                fp8rt_stream stream,
                                std::unique_ptr<DeviceRows> &rows) {
  std::unique_ptr<DeviceRows> made(new DeviceRows(state, device));
  std::vector<size_t> offsets;
  for (const Slot &slot : state.manifest.slots) {
    made->size = alignTo(made->size, kAlignment);
    offsets.push_back(made->size);
    made->size += static_cast<size_t>(slot.cache);
  }
  void *memory;
  if (fp8rt_status status = fp8rt_memory_alloc(device, made->size, &memory))
    return status;
  made->memory = static_cast<uint8_t *>(memory);
  for (size_t i = 0; i < offsets.size(); ++i)
    made->caches.push_back(
        state.manifest.slots[i].cache ? made->memory + offsets[i] : nullptr);
  if (fp8rt_status status =
          fp8rt_memory_set(device, memory, 0, made->getWrittenBytes(), stream))
    return status;
  rows = std::move(made);
  return FP8RT_OK;
}

DeviceRows::~DeviceRows() { fp8rt_memory_free(device, memory); }

fp8rt_state_rows DeviceRows::getRows() const {
  auto *underflow = reinterpret_cast<int64_t *>(memory);
  int64_t *saturated = underflow + numSlots;
  auto *amax = reinterpret_cast<float *>(saturated + numSlots);
  float *scale = amax + numSlots;
  return {static_cast<int64_t>(numSlots),
          amax,
          scale,
          /*scale_inv=*/scale + numSlots,
          underflow,
          saturated,
          caches.data(),
          /*num_words=*/0,
          nullptr};
}

fp8rt_status DeviceRows::upload(const ScalingState &state,
                                fp8rt_stream stream) {
  std::vector<uint8_t> scales(getScaleBytes());
  size_t bytes = numSlots * sizeof(float);
  std::copy_n(reinterpret_cast<const uint8_t *>(state.scale.data()), bytes,
              scales.data());
  std::copy_n(reinterpret_cast<const uint8_t *>(state.scaleInv.data()), bytes,
              scales.data() + bytes);
  if (scales == uploaded)
    return FP8RT_OK;
  uploaded.clear();
  if (fp8rt_status status = fp8rt_memory_copy(
          device, memory + getWrittenBytes(), scales.data(), bytes * 2, stream))
    return status;
  uploaded = std::move(scales);
  return FP8RT_OK;
}

fp8rt_status DeviceRows::download(ScalingState &state, fp8rt_stream stream) {
  if (fp8rt_status status = fp8rt_memory_copy(device, written.data(), memory,
                                              getWrittenBytes(), stream))
    return status;
  if (fp8rt_status status = fp8rt_stream_synchronize(device, stream))
    return status;
  if (fp8rt_status status =
          fp8rt_memory_set(device, memory, 0, getWrittenBytes(), stream))
    return status;
  auto *underflow = reinterpret_cast<const int64_t *>(written.data());
  const int64_t *saturated = underflow + numSlots;
  auto *amax = reinterpret_cast<const float *>(saturated + numSlots);
  Staging &pending = state.staging;
  for (size_t i = 0; i < numSlots; ++i) {
    pending.amax[i] =
        makeAmax(std::max(getAmaxBits(pending.amax[i]), getAmaxBits(amax[i])));
    pending.underflow[i] += underflow[i];
    pending.saturated[i] += saturated[i];
  }
  return FP8RT_OK;
}

//===----------------------------------------------------------------------===//
// The C functions
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_state_upload(fp8rt_state handle, int32_t device,
                                fp8rt_stream stream, fp8rt_state_rows *rows) {
  return guard([&]() -> fp8rt_status {
    if (!rows)
      return fail(FP8RT_ERROR_INVALID_ARGUMENT, "expected rows, but got null");
    Access access(handle, Access::Write);
    if (access.getStatus() != FP8RT_OK)
      return access.getStatus();
    std::unique_ptr<DeviceRows> &onDevice = access.getDeviceRows();
    if (onDevice && onDevice->getDevice() != device)
      return fail(FP8RT_ERROR_WRONG_DEVICE,
                  "expected device " + std::to_string(onDevice->getDevice()) +
                      ", which has the rows of the state, but got " +
                      std::to_string(device));
    if (!onDevice)
      if (fp8rt_status status =
              DeviceRows::create(*access, device, stream, onDevice))
        return status;
    if (fp8rt_status status = onDevice->upload(*access, stream))
      return status;
    *rows = onDevice->getRows();
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_state_download(fp8rt_state handle, fp8rt_stream stream) {
  return guard([&]() -> fp8rt_status {
    Access access(handle, Access::Write);
    if (access.getStatus() != FP8RT_OK)
      return access.getStatus();
    if (!access.getDeviceRows())
      return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                  "expected a state with rows on a device, but nothing was "
                  "uploaded");
    return access.getDeviceRows()->download(*access, stream);
  });
}
