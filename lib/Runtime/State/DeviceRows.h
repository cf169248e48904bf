//===- DeviceRows.h - A state in the memory of a device ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STATE_DEVICEROWS_H
#define FP8_LIB_RUNTIME_STATE_DEVICEROWS_H

#include "ScalingStateDetail.h"

#include "fp8/Runtime/DeviceState.h"

#include <memory>

namespace fp8rt::detail {

/// All values of one state in the memory of a device, in one allocation: its
/// rows, one after the other, and the caches. Either the host has the values or
/// the device, which may be ahead: nobody sees what a stream does to them.
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
  /// Whether the values of the host may be old.
  bool isAhead() const { return ahead; }

  /// Makes the device's values the state's, copying those of the host if they
  /// are others.
  fp8rt_status upload(const ScalingState &state, fp8rt_stream stream);
  /// Makes the host's values the state's.
  fp8rt_status download(ScalingState &state, fp8rt_stream stream);
  /// Zeros for what compiled code records in a step.
  fp8rt_status clearStaging(fp8rt_stream stream);

private:
  DeviceRows(const ScalingState &state, int32_t device);

  int32_t device;
  size_t numSlots, numWords;
  uint8_t *memory = nullptr;
  /// Pointers to the device's memory; null for slots without a cache.
  std::vector<void *> caches;
  /// The values that both had last; none at first.
  std::vector<uint8_t> common;
  bool ahead = false;
};

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_STATE_DEVICEROWS_H
