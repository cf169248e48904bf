//===- GPU.h - The GPU that is measured -------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TUNING_GPU_H
#define FP8_LIB_TUNING_GPU_H

#include "fp8/Runtime/Memory.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace mlir::fp8 {

/// The first GPU, a stream of ours and two events in it.
class GPU {
public:
  static constexpr int32_t kDevice = 0;

  /// Says what is missing if there is none that kernels for this compute
  /// capability can run on: 10 times the major number, plus the minor one.
  static llvm::Expected<std::unique_ptr<GPU>> create(int64_t capability);
  ~GPU();
  GPU(const GPU &) = delete;

  const fp8rt_device_info &getInfo() const { return info; }
  fp8rt_stream getStream() const { return stream; }

  /// Milliseconds that what `work` puts into the stream takes.
  llvm::Expected<double> time(llvm::function_ref<llvm::Error()> work);

private:
  GPU() = default;

  fp8rt_device_info info{};
  fp8rt_stream stream = nullptr;
  fp8rt_event start = nullptr, end = nullptr;
};

/// Memory of a GPU, all of which goes with this object.
class GPUMemory {
public:
  explicit GPUMemory(GPU &gpu) : gpu(gpu) {}
  ~GPUMemory();
  GPUMemory(const GPUMemory &) = delete;

  /// Filled with one byte.
  llvm::Expected<void *> allocate(size_t bytes, uint8_t value);
  /// Filled with `data`, over and over.
  llvm::Expected<void *> allocate(size_t bytes, llvm::ArrayRef<uint8_t> data);

private:
  GPU &gpu;
  llvm::SmallVector<void *> blocks;
};

} // namespace mlir::fp8

#endif // FP8_LIB_TUNING_GPU_H
