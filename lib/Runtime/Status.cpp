//===- Status.cpp - How libfp8rt's functions end --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StatusDetail.h"

#include <algorithm>
#include <cstring>

using namespace fp8rt;

/// Not a string: keeping the message must not need memory.
static thread_local char lastError[1024];

fp8rt_status detail::fail(fp8rt_status status,
                          std::string_view message) noexcept {
  size_t size = std::min(message.size(), sizeof(lastError) - 1);
  // Half a character would not be UTF-8.
  if (size < message.size())
    while (size > 0 && (static_cast<uint8_t>(message[size]) & 0xC0) == 0x80)
      --size;
  std::memcpy(lastError, message.data(), size);
  lastError[size] = '\0';
  return status;
}

const char *fp8rt_get_last_error(void) { return lastError; }

fp8rt_status fp8rt_set_last_error(fp8rt_status status, const char *message) {
  return detail::fail(status, message ? message : "");
}

uint32_t fp8rt_get_version(void) { return FP8RT_VERSION; }

const char *fp8rt_stringify_status(fp8rt_status status) {
  static constexpr const char *names[] = {
      "FP8RT_OK",
      "FP8RT_ERROR_INVALID_ARGUMENT",
      "FP8RT_ERROR_INVALID_HANDLE",
      "FP8RT_ERROR_BUSY",
      "FP8RT_ERROR_NOT_FOUND",
      "FP8RT_ERROR_INVALID_MANIFEST",
      "FP8RT_ERROR_FILE",
      "FP8RT_ERROR_VERSION",
      "FP8RT_ERROR_MISMATCH",
      "FP8RT_ERROR_OUT_OF_MEMORY",
      "FP8RT_ERROR_INTERNAL",
      "FP8RT_ERROR_NO_DRIVER",
      "FP8RT_ERROR_DRIVER_TOO_OLD",
      "FP8RT_ERROR_UNSUPPORTED_ARCH",
      "FP8RT_ERROR_INVALID_IMAGE",
      "FP8RT_ERROR_WRONG_DEVICE",
      "FP8RT_ERROR_DEVICE_LOST",
      "FP8RT_ERROR_CUDA",
      "FP8RT_ERROR_INVALID_PROGRAM",
      "FP8RT_ERROR_ON_DEVICE",
      "FP8RT_ERROR_STOPPED",
  };
  constexpr int32_t count = sizeof(names) / sizeof(names[0]);
  return status >= 0 && status < count ? names[status] : "unknown status";
}
