//===- DeviceRows.h - The rows of a state on a device -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_DEVICEROWS_H
#define FP8_LIB_RUNTIME_DEVICEROWS_H

#include "ScalingStateDetail.h"

#include "fp8/Runtime/DeviceState.h"

#include <memory>

namespace fp8rt::detail {

/// The rows of one state in the memory of a device, in one allocation: what
/// programs write (counts, then amaxes), the scales, the caches.
class DeviceRows {
public:
  static fp8rt_status create(const ScalingState &state, int32_t device,
                             fp8rt_stream stream,
                             std::unique_ptr<DeviceRows> &rows);
  DeviceRows(const DeviceRows &) = delete;
  DeviceRows &operator=(const DeviceRows &) = delete;
  ~DeviceRows();

  int32_t getDevice() const { return device; }
  fp8rt_state_rows getRows() const;

  fp8rt_status upload(const ScalingState &state, fp8rt_stream stream);
  fp8rt_status download(ScalingState &state, fp8rt_stream stream);

private:
  DeviceRows(const ScalingState &state, int32_t device);

  size_t getWrittenBytes() const {
    return numSlots * (2 * sizeof(int64_t) + sizeof(float));
  }
  size_t getScaleBytes() const { return numSlots * 2 * sizeof(float); }

  int32_t device;
  size_t numSlots;
  uint8_t *memory = nullptr;
  size_t size;
  /// Offsets into the memory until that is there, then pointers; null for
  /// slots without a cache.
  std::vector<void *> caches;
  /// The host's copies of what programs wrote, and of the scales that the
  /// device has; none of these at first.
  std::vector<uint8_t> written, uploaded;
};

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_DEVICEROWS_H
