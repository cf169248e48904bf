//===- LoadImage.cpp - Images become modules of the driver ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Image.h"
#include "Module.h"

#include <algorithm>
#include <vector>

using namespace fp8rt;
using namespace fp8rt::cuda;

/// What a compiler wrote in lines, in one.
static std::string joinLines(const char *text) {
  std::string line;
  for (const char *c = text; *c; ++c)
    line += *c == '\n' ? "; " : std::string(1, *c);
  while (!line.empty() && (line.back() == ' ' || line.back() == ';'))
    line.pop_back();
  return line;
}

static fp8rt_status checkImage(const Image &image, size_t size) {
  if (image.kind == ImageKind::Unknown)
    return detail::fail(FP8RT_ERROR_INVALID_IMAGE,
                        "expected image to be a cubin, a fatbin or PTX, but "
                        "got " +
                            std::to_string(size) +
                            " bytes that are none of these");
  if (size < image.declaredSize)
    return detail::fail(FP8RT_ERROR_INVALID_IMAGE,
                        "expected " + cuda::describe(image) +
                            " of as many bytes as it says, " +
                            std::to_string(image.declaredSize) + ", but got " +
                            std::to_string(size));
  return FP8RT_OK;
}

static fp8rt_status failLoad(const Driver &driver, Result result,
                             int32_t device, const Image &image,
                             const char *log) {
  const fp8rt_device_info *info;
  bool known = getDeviceInfo(device, info) == FP8RT_OK;
  bool lost = getStatus(result) == FP8RT_ERROR_DEVICE_LOST;
  if (!lost && (result == ERROR_NO_BINARY_FOR_GPU ||
                (known && !canRunOn(image, info->compute_capability_major,
                                    info->compute_capability_minor))))
    return detail::fail(FP8RT_ERROR_UNSUPPORTED_ARCH,
                        "expected code for " + describeDevice(device) +
                            ", but got " + cuda::describe(image));
  if (result == ERROR_UNSUPPORTED_PTX_VERSION)
    return detail::fail(FP8RT_ERROR_DRIVER_TOO_OLD,
                        "expected PTX that a driver for CUDA " +
                            formatVersion(driver.version) + " knows, but got " +
                            cuda::describe(image));
  std::string words = joinLines(log);
  return detail::fail(
      getStatus(result),
      "cannot load " + cuda::describe(image) + " on " + describeDevice(device) +
          ": " + cuda::describe(result) + (words.empty() ? "" : ": " + words));
}

fp8rt_status cuda::loadImage(const Driver &driver, int32_t device,
                             std::string_view bytes, int optLevel,
                             Module &module) {
  Image image = inspectImage(bytes);
  if (fp8rt_status status = checkImage(image, bytes.size()))
    return status;
  std::string text; // PTX that ends in 0
  const void *data = bytes.data();
  if (image.kind == ImageKind::PTX) {
    text = bytes.substr(0, bytes.find('\0'));
    data = text.c_str();
  }
  std::vector<char> log(4096, '\0');
  JitOption options[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                         JIT_OPTIMIZATION_LEVEL};
  // Numbers are passed as the pointers' values.
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1),
                    reinterpret_cast<void *>(
                        static_cast<uintptr_t>(std::clamp(optLevel, 0, 4)))};
  RelaxedCapture relaxed(driver);
  Result result = driver.cuModuleLoadDataEx(&module, data, 3, options, values);
  if (result == SUCCESS)
    return FP8RT_OK;
  return failLoad(driver, result, device, image, log.data());
}
