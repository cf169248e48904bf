//===- DeviceRows.cpp - A state in the memory of a device -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceRows.h"

#include "ScalingStateHandles.h"
#include "StructSize.h"

#include "fp8/Runtime/Memory.h"

#include <cstring>

using namespace fp8rt;
using namespace fp8rt::detail;

/// What the device's bulk copies ask of a tensor's address, and more than any
/// vector access does.
static constexpr size_t kAlignment = 256;

static size_t alignTo(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

/// Calls `visitor(values, count)` for each row of the host's, in the order of
/// the device's. What compiled code records lies together.
template <typename State, typename Visitor>
static void visitRows(State &state, Visitor &&visitor) {
  size_t numSlots = state.getNumSlots();
  visitor(state.recorded.data(), numSlots);
  visitor(state.nonFinite.data(), numSlots);
  visitor(&state.steps, 1);
  visitor(state.staging.underflow.data(), numSlots);
  visitor(state.staging.saturated.data(), numSlots);
  visitor(state.staging.amax.data(), numSlots);
  visitor(state.scale.data(), numSlots);
  visitor(state.scaleInv.data(), numSlots);
  visitor(state.maxFinite.data(), numSlots);
  visitor(state.lastAmax.data(), numSlots);
  visitor(state.getWords(0), numSlots * state.getNumWords());
}

fp8rt_state_rows DeviceRows::getRows() const {
  fp8rt_state_rows rows;
  uint8_t *next = memory;
  auto take = [&](auto *&row, size_t count) {
    row = reinterpret_cast<std::remove_reference_t<decltype(row)>>(next);
    next += count * sizeof(*row);
  };
  rows.num_slots = static_cast<int64_t>(numSlots);
  rows.num_words = static_cast<int64_t>(numWords);
  rows.cache = caches.data();
  take(rows.recorded, numSlots);
  take(rows.non_finite, numSlots);
  take(rows.steps, 1);
  take(rows.underflow, numSlots);
  take(rows.saturated, numSlots);
  take(rows.amax, numSlots);
  take(rows.scale, numSlots);
  take(rows.scale_inv, numSlots);
  take(rows.max_finite, numSlots);
  take(rows.last_amax, numSlots);
  take(rows.words, numSlots * numWords);
  return rows;
}

static std::vector<uint8_t> pack(const ScalingState &state) {
  size_t size = 0;
  visitRows(state, [&](const auto *values, size_t count) {
    size += count * sizeof(*values);
  });
  std::vector<uint8_t> packed(size);
  uint8_t *next = packed.data();
  visitRows(state, [&](const auto *values, size_t count) {
    std::memcpy(next, values, count * sizeof(*values));
    next += count * sizeof(*values);
  });
  return packed;
}

static void unpack(ScalingState &state, const std::vector<uint8_t> &packed) {
  const uint8_t *next = packed.data();
  visitRows(state, [&](auto *values, size_t count) {
    std::memcpy(values, next, count * sizeof(*values));
    next += count * sizeof(*values);
  });
}

//===----------------------------------------------------------------------===//
// Life
//===----------------------------------------------------------------------===//

DeviceRows::DeviceRows(const ScalingState &state, int32_t device)
    : device(device), numSlots(state.getNumSlots()),
      numWords(state.getNumWords()) {}

fp8rt_status DeviceRows::create(const ScalingState &state, int32_t device,
                                fp8rt_stream stream,
                                std::unique_ptr<DeviceRows> &rows) {
  std::unique_ptr<DeviceRows> made(new DeviceRows(state, device));
  size_t valuesSize = pack(state).size(), size = valuesSize;
  std::vector<size_t> offsets;
  for (const Slot &slot : state.manifest.slots) {
    size = alignTo(size, kAlignment);
    offsets.push_back(size);
    size += static_cast<size_t>(slot.cache);
  }
  void *memory;
  if (fp8rt_status status = fp8rt_memory_alloc(device, size, &memory))
    return status;
  made->memory = static_cast<uint8_t *>(memory);
  for (size_t i = 0; i < offsets.size(); ++i)
    made->caches.push_back(
        state.manifest.slots[i].cache ? made->memory + offsets[i] : nullptr);
  if (size != valuesSize)
    if (fp8rt_status status = fp8rt_memory_set(
            device, made->memory + valuesSize, 0, size - valuesSize, stream))
      return status;
  rows = std::move(made);
  return FP8RT_OK;
}

DeviceRows::~DeviceRows() { fp8rt_memory_free(device, memory); }

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

fp8rt_status DeviceRows::upload(const ScalingState &state,
                                fp8rt_stream stream) {
  if (ahead)
    return FP8RT_OK;
  std::vector<uint8_t> values = pack(state);
  if (values != common) {
    common.clear();
    if (fp8rt_status status = fp8rt_memory_copy(device, memory, values.data(),
                                                values.size(), stream))
      return status;
    common = std::move(values);
  }
  ahead = true;
  return FP8RT_OK;
}

fp8rt_status DeviceRows::download(ScalingState &state, fp8rt_stream stream) {
  std::vector<uint8_t> values = ahead ? common : pack(state);
  if (values != common)
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected an upload of what the host has changed in the state "
                "since the last download, before another");
  if (fp8rt_status status = fp8rt_memory_copy(device, values.data(), memory,
                                              values.size(), stream))
    return status;
  if (fp8rt_status status = fp8rt_stream_synchronize(device, stream))
    return status;
  unpack(state, values);
  common = std::move(values);
  ahead = false;
  return FP8RT_OK;
}

fp8rt_status DeviceRows::clearStaging(fp8rt_stream stream) {
  fp8rt_state_rows rows = getRows();
  auto *first = reinterpret_cast<uint8_t *>(rows.underflow);
  auto *last = reinterpret_cast<uint8_t *>(rows.amax + numSlots);
  return fp8rt_memory_set(device, first, 0, static_cast<size_t>(last - first),
                          stream);
}

//===----------------------------------------------------------------------===//
// The C functions
//===----------------------------------------------------------------------===//

fp8rt_status detail::uploadState(const Access &access, int32_t device,
                                 fp8rt_stream stream, fp8rt_state_rows &rows) {
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
  rows = onDevice->getRows();
  return FP8RT_OK;
}

fp8rt_status fp8rt_state_upload(fp8rt_state handle, int32_t device,
                                fp8rt_stream stream, fp8rt_state_rows *rows) {
  return guard([&]() -> fp8rt_status {
    if (fp8rt_status status = checkStruct("rows", rows))
      return status;
    Access access(handle, Access::Write);
    if (access.getStatus() != FP8RT_OK)
      return access.getStatus();
    fp8rt_state_rows made;
    fp8rt_status status = uploadState(access, device, stream, made);
    if (status == FP8RT_OK)
      giveStruct(rows, made);
    return status;
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
