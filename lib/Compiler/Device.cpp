//===- Device.cpp - A stream of a GPU -------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Device.h"

#include "fp8/Runtime/Memory.h"
#include "fp8/Support/Runtime.h"

using namespace mlir::fp8;

llvm::Expected<std::unique_ptr<Device>> Device::create(int32_t index) {
  std::unique_ptr<Device> device(new Device(index));
  if (auto error = makeError(fp8rt_stream_create(index, &device->stream)))
    return error;
  return device;
}

Device::~Device() {
  if (stream)
    fp8rt_stream_destroy(index, stream);
}

llvm::Expected<void *> Device::upload(const void *data, size_t size) {
  void *memory = nullptr;
  if (auto error = makeError(
          fp8rt_workspace_alloc(index, stream, size, /*flags=*/0, &memory)))
    return error;
  if (size == 0)
    return memory;
  if (auto error =
          makeError(fp8rt_memory_copy(index, memory, data, size, stream))) {
    free(memory);
    return error;
  }
  return memory;
}

llvm::Error Device::download(void *data, const void *source, size_t size) {
  if (size == 0)
    return llvm::Error::success();
  if (auto error =
          makeError(fp8rt_memory_copy(index, data, source, size, stream)))
    return error;
  return synchronize();
}

void Device::free(void *memory) {
  // What it could fail with has been reported by what came before.
  fp8rt_workspace_free(index, stream, memory);
}

llvm::Error Device::synchronize() {
  return makeError(fp8rt_stream_synchronize(index, stream));
}
