//===- WrapperErrors.cpp - Errors of functions that return none -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WrapperErrors.h"

#include "fp8/Runtime/GpuWrappers.h"

#include <cstdio>
#include <cstring>
#include <set>

using namespace fp8rt;
using namespace fp8rt::cuda;

namespace {
struct ThreadState {
  int32_t device = -1; /* that of the current context */
  fp8rt_status status = FP8RT_OK;
  char message[1024];
};
} // namespace

static thread_local ThreadState threadState;

/// Whether `name` fails with `status` for the first time in this process.
static bool isNews(const char *name, fp8rt_status status) {
  // Never destroyed: threads may outlive main.
  static auto *mutex = new std::mutex;
  static auto *seen = new std::set<std::pair<std::string, fp8rt_status>>;
  std::lock_guard<std::mutex> lock(*mutex);
  return seen->emplace(name, status).second;
}

bool cuda::hasWrapperError() { return threadState.status != FP8RT_OK; }

void cuda::keepWrapperError(const char *name, fp8rt_status status) noexcept {
  char message[sizeof(threadState.message)];
  std::snprintf(message, sizeof(message), "%s: %s", name,
                fp8rt_get_last_error());
  // What follows from the first error is no news.
  if (threadState.status != FP8RT_OK)
    return;
  threadState.status = status;
  std::memcpy(threadState.message, message, sizeof(message));
  bool isFirst = true;
  detail::guard([&]() -> fp8rt_status {
    isFirst = isNews(name, status);
    return FP8RT_OK;
  });
  if (isFirst)
    std::fprintf(stderr, "fp8rt: %s\n", message);
}

fp8rt_status cuda::getWrapperDevice(int32_t &device) {
  if (threadState.device < 0)
    return fp8rt_device_get_current(&device);
  device = threadState.device;
  return FP8RT_OK;
}

fp8rt_status fp8rt_gpu_take_error(void) {
  fp8rt_status status = threadState.status;
  if (status == FP8RT_OK)
    return FP8RT_OK;
  threadState.status = FP8RT_OK;
  return detail::fail(status, threadState.message);
}

void mgpuSetDefaultDevice(int32_t device) { threadState.device = device; }
