//===- Device.h - The GPU that a program runs on ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_DEVICE_H
#define FP8_TOOLS_FP8RUN_DEVICE_H

#include "fp8/Runtime/Context.h"
#include "fp8/Runtime/DeviceState.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <utility>

namespace mlir::fp8 {

/// A GPU with a stream and the context of one program.
class Device {
public:
  /// The first GPU; says what is missing if there is none.
  static llvm::Expected<std::unique_ptr<Device>> create();
  ~Device();

  /// What the program takes as its last argument.
  fp8rt_context *getContext() const { return context; }

  /// Memory of the device with a copy of `data`; null for 0 bytes.
  llvm::Expected<void *> upload(const void *data, size_t size);
  llvm::Error download(void *data, const void *source, size_t size);
  void free(void *memory);

  /// Gives a state to the device, and says where its rows are.
  llvm::Error upload(fp8rt_state state, fp8rt_state_rows &rows);
  /// Takes it back.
  llvm::Error download(fp8rt_state state);

  /// Waits for the program, and returns the error that it ran into.
  llvm::Error finish();

private:
  Device() = default;

  fp8rt_stream stream = nullptr;
  fp8rt_context *context = nullptr;
};

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_DEVICE_H
