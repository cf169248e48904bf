//===- GPU.cpp - The GPU that is measured ---------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPU.h"

#include "fp8/Support/Runtime.h"

using namespace mlir::fp8;

llvm::Expected<std::unique_ptr<GPU>> GPU::create(int64_t capability) {
  std::unique_ptr<GPU> gpu(new GPU);
  if (auto error = makeError(fp8rt_device_get_info(kDevice, &gpu->info)))
    return error;
  int32_t major = gpu->info.compute_capability_major;
  int32_t minor = gpu->info.compute_capability_minor;
  if (major * 10 + minor != capability)
    return llvm::createStringError(
        "expected a GPU of compute capability " + llvm::Twine(capability / 10) +
        "." + llvm::Twine(capability % 10) + ", but got " +
        llvm::Twine(gpu->info.name) + " of " + llvm::Twine(major) + "." +
        llvm::Twine(minor));
  if (auto error = makeError(fp8rt_stream_create(kDevice, &gpu->stream)))
    return error;
  for (fp8rt_event *event : {&gpu->start, &gpu->end})
    if (auto error = makeError(fp8rt_event_create(kDevice, event)))
      return error;
  return gpu;
}

GPU::~GPU() {
  // What these could fail with has been reported by what came before.
  for (fp8rt_event event : {start, end})
    if (event)
      fp8rt_event_destroy(kDevice, event);
  if (stream)
    fp8rt_stream_destroy(kDevice, stream);
}

llvm::Expected<double> GPU::time(llvm::function_ref<llvm::Error()> work) {
  if (auto error = makeError(fp8rt_event_record(kDevice, start, stream)))
    return error;
  if (auto error = work())
    return error;
  if (auto error = makeError(fp8rt_event_record(kDevice, end, stream)))
    return error;
  if (auto error = makeError(fp8rt_event_synchronize(kDevice, end)))
    return error;
  float milliseconds = 0;
  if (auto error = makeError(
          fp8rt_event_get_elapsed_ms(kDevice, start, end, &milliseconds)))
    return error;
  return milliseconds;
}

GPUMemory::~GPUMemory() {
  for (void *block : blocks)
    fp8rt_memory_free(GPU::kDevice, block);
}

llvm::Expected<void *> GPUMemory::allocate(size_t bytes, uint8_t value) {
  void *block = nullptr;
  if (auto error = makeError(fp8rt_memory_alloc(GPU::kDevice, bytes, &block)))
    return error;
  blocks.push_back(block);
  if (bytes)
    if (auto error = makeError(fp8rt_memory_set(GPU::kDevice, block, value,
                                                bytes, gpu.getStream())))
      return error;
  return block;
}

llvm::Expected<void *> GPUMemory::allocate(size_t bytes,
                                           llvm::ArrayRef<uint8_t> data) {
  void *block = nullptr;
  if (auto error = makeError(fp8rt_memory_alloc(GPU::kDevice, bytes, &block)))
    return error;
  blocks.push_back(block);
  for (size_t at = 0; at < bytes; at += data.size())
    if (auto error = makeError(fp8rt_memory_copy(
            GPU::kDevice, static_cast<uint8_t *>(block) + at, data.data(),
            std::min(data.size(), bytes - at), gpu.getStream())))
      return error;
  return block;
}
