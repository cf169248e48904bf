//===- Device.cpp - The GPU that a program runs on --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include "StateContents.h"

#include "fp8/Runtime/Memory.h"

using namespace mlir::fp8;

static constexpr int32_t kDevice = 0;

llvm::Expected<std::unique_ptr<Device>> Device::create() {
  std::unique_ptr<Device> device(new Device);
  if (auto error = makeError(fp8rt_stream_create(kDevice, &device->stream)))
    return error;
  if (auto error = makeError(
          fp8rt_context_create(kDevice, device->stream, &device->context)))
    return error;
  return device;
}

Device::~Device() {
  fp8rt_context_destroy(context);
  if (stream)
    fp8rt_stream_destroy(kDevice, stream);
}

llvm::Expected<void *> Device::upload(const void *data, size_t size) {
  void *memory = nullptr;
  if (auto error = makeError(
          fp8rt_workspace_alloc(kDevice, stream, size, /*flags=*/0, &memory)))
    return error;
  if (size == 0)
    return memory;
  if (auto error =
          makeError(fp8rt_memory_copy(kDevice, memory, data, size, stream)))
    return error;
  return memory;
}

llvm::Error Device::download(void *data, const void *source, size_t size) {
  if (size == 0)
    return llvm::Error::success();
  if (auto error =
          makeError(fp8rt_memory_copy(kDevice, data, source, size, stream)))
    return error;
  return makeError(fp8rt_stream_synchronize(kDevice, stream));
}

void Device::free(void *memory) {
  // What it could fail with has been reported by what came before.
  fp8rt_workspace_free(kDevice, stream, memory);
}

llvm::Error Device::upload(fp8rt_state state, fp8rt_state_rows &rows) {
  return makeError(fp8rt_state_upload(state, kDevice, stream, &rows));
}

llvm::Error Device::download(fp8rt_state state) {
  return makeError(fp8rt_state_download(state, stream));
}

llvm::Error Device::finish() {
  if (auto error = makeError(fp8rt_context_take_status(context)))
    return error;
  return makeError(fp8rt_stream_synchronize(kDevice, stream));
}
