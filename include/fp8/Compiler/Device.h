//===- Device.h - A stream of a GPU -----------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_DEVICE_H
#define FP8_COMPILER_DEVICE_H

#include "fp8/Runtime/Stream.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace mlir::fp8 {

/// A stream of a GPU, and memory for the work in it. Errors are RuntimeErrors.
class Device {
public:
  /// A new stream of GPU `index`; says what is missing if there is none.
  static llvm::Expected<std::unique_ptr<Device>> create(int32_t index = 0);
  ~Device();
  Device(const Device &) = delete;

  int32_t getIndex() const { return index; }
  fp8rt_stream getStream() const { return stream; }

  /// Memory of the device with a copy of `data`; null for 0 bytes. It is freed
  /// with `free`.
  llvm::Expected<void *> upload(const void *data, size_t size);
  /// Waits for the stream and copies.
  llvm::Error download(void *data, const void *source, size_t size);
  /// In stream order, also what a program allocated in it.
  void free(void *memory);

  llvm::Error synchronize();

private:
  explicit Device(int32_t index) : index(index) {}

  int32_t index;
  fp8rt_stream stream = nullptr;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_DEVICE_H
