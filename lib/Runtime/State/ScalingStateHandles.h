//===- ScalingStateHandles.h - Who may use which state ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STATE_SCALINGSTATEHANDLES_H
#define FP8_LIB_RUNTIME_STATE_SCALINGSTATEHANDLES_H

#include "DeviceRows.h"
#include "ScalingStateDetail.h"

#include <memory>

namespace fp8rt::detail {

/// Gives the state a handle.
fp8rt_state addState(std::unique_ptr<ScalingState> state);

/// Frees the state, unless it is in use.
fp8rt_status removeState(fp8rt_state handle);

/// The right to use a state, while this object lives: for one writer or any
/// number of readers, and never by waiting.
class Access {
public:
  enum Kind { Read, Write };
  Access(fp8rt_state handle, Kind kind);
  Access(const Access &) = delete;
  Access &operator=(const Access &) = delete;
  ~Access();

  /// FP8RT_OK, or why there is no state here; the error has been reported.
  fp8rt_status getStatus() const { return status; }
  ScalingState &operator*() const { return *state; }
  /// What a device has of the state, or null; for writers.
  std::unique_ptr<DeviceRows> &getDeviceRows() const { return *deviceRows; }
  /// FP8RT_OK if the host has the values; the error has been reported.
  fp8rt_status checkValues() const;

private:
  fp8rt_state handle;
  Kind kind;
  fp8rt_status status;
  ScalingState *state = nullptr;
  std::unique_ptr<DeviceRows> *deviceRows = nullptr;
};

/// Gives the values of the state to `device`, and says where its rows are.
fp8rt_status uploadState(const Access &access, int32_t device,
                         fp8rt_stream stream, fp8rt_state_rows &rows);

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_STATE_SCALINGSTATEHANDLES_H
