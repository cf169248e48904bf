//===- WrapperErrors.h - Errors of functions that return none ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_WRAPPERERRORS_H
#define FP8_LIB_RUNTIME_CUDA_WRAPPERERRORS_H

#include "Context.h"

namespace fp8rt::cuda {

/// Whether a wrapper has failed on this thread and nobody has asked.
bool hasWrapperError();

/// Keeps the error that was just reported as that of the wrapper `name`, and
/// writes it to stderr if it is the first of its kind.
void keepWrapperError(const char *name, fp8rt_status status) noexcept;

/// The device that this thread's wrappers use.
fp8rt_status getWrapperDevice(int32_t &device);

/// Runs `body(driver, device)`, which returns a status, in the context of the
/// thread's device.
template <typename Body>
void inWrapper(const char *name, Body &&body) noexcept {
  int32_t device = 0;
  fp8rt_status status = detail::guard([&] { return getWrapperDevice(device); });
  if (status == FP8RT_OK)
    status = inContext(device, [&](const Driver &driver) -> fp8rt_status {
      return body(driver, device);
    });
  if (status != FP8RT_OK)
    keepWrapperError(name, status);
}

/// The same for what is only done while no error is kept.
template <typename Body>
void inHealthyWrapper(const char *name, Body &&body) noexcept {
  if (!hasWrapperError())
    inWrapper(name, std::forward<Body>(body));
}

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_WRAPPERERRORS_H
