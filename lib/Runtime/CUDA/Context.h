//===- Context.h - Working in the context of a device -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_CONTEXT_H
#define FP8_LIB_RUNTIME_CUDA_CONTEXT_H

#include "Driver.h"

#include "fp8/Runtime/Device.h"

#include <mutex>

namespace fp8rt::cuda {

/// What we keep of a device for the life of the process.
struct DeviceState {
  std::mutex mutex; /* for what follows */
  Context context = nullptr;
  MemPool pool = nullptr;
  bool hasInfo = false;
  fp8rt_device_info info;
};

/// The state of a device that exists; else the status has been reported.
fp8rt_status getDeviceState(int32_t device, DeviceState *&state);

/// Facts about a device, read from the driver once.
fp8rt_status getDeviceInfo(int32_t device, const fp8rt_device_info *&info);

/// "device 0 (NVIDIA H200, sm_90)", for messages.
std::string describeDevice(int32_t device);

/// The primary context of a device, retained for good: releasing it at exit
/// would race with the driver's own end.
fp8rt_status getPrimaryContext(int32_t device, Context &context);

/// Makes a context the thread's current one, while this object lives. Nothing
/// is to be done where it is already, as in a thread of PyTorch.
class ScopedContext {
public:
  explicit ScopedContext(int32_t device);
  ScopedContext(const Driver &driver, Context context) {
    enter(driver, context);
  }
  ScopedContext(const ScopedContext &) = delete;
  ScopedContext &operator=(const ScopedContext &) = delete;
  ~ScopedContext() {
    if (pushed)
      driver->cuCtxPopCurrent(nullptr);
  }

  /// FP8RT_OK, or why the context cannot be used; the error has been reported.
  fp8rt_status getStatus() const { return status; }
  const Driver *operator->() const { return driver; }

private:
  void enter(const Driver &theDriver, Context context);

  const Driver *driver = nullptr;
  fp8rt_status status = FP8RT_OK;
  bool pushed = false;
};

/// Lets this thread do, while this object lives, what would break a capture:
/// what it does is no part of any stream's work.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const Driver &driver) : driver(driver) {
    driver.cuThreadExchangeStreamCaptureMode(&mode);
  }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;
  ~RelaxedCapture() { driver.cuThreadExchangeStreamCaptureMode(&mode); }

private:
  const Driver &driver;
  CaptureMode mode = STREAM_CAPTURE_MODE_RELAXED;
};

/// Runs `body(driver)`, which returns a status, in the context of `device`.
template <typename Body>
fp8rt_status inContext(int32_t device, Body &&body) noexcept {
  return detail::guard([&]() -> fp8rt_status {
    ScopedContext context(device);
    if (context.getStatus() != FP8RT_OK)
      return context.getStatus();
    return body(*context.operator->());
  });
}

inline Stream asStream(void *stream) { return static_cast<Stream>(stream); }
inline DevicePtr asDevicePtr(const void *ptr) {
  return reinterpret_cast<uintptr_t>(ptr);
}
inline void *asPointer(DevicePtr ptr) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(ptr));
}

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_CONTEXT_H
