//===- Runtime.h - libfp8rt with errors and lifetimes of C++ ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_RUNTIME_H
#define FP8_SUPPORT_RUNTIME_H

#include "fp8/Runtime/ScalingState.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <utility>

namespace mlir::fp8 {

/// The error of a call of libfp8rt, with its message.
class RuntimeError : public llvm::ErrorInfo<RuntimeError> {
public:
  static char ID;

  RuntimeError(fp8rt_status status, std::string message)
      : status(status), text(std::move(message)) {}

  fp8rt_status getStatus() const { return status; }
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  fp8rt_status status;
  std::string text;
};

/// The error of a call that returned `status`; none if that is FP8RT_OK.
inline llvm::Error makeError(fp8rt_status status) {
  if (status == FP8RT_OK)
    return llvm::Error::success();
  return llvm::make_error<RuntimeError>(status, fp8rt_get_last_error());
}

/// A state that is destroyed with this object.
class StateHandle {
public:
  StateHandle() = default;
  StateHandle(StateHandle &&other) noexcept
      : handle(std::exchange(other.handle, 0)) {}
  StateHandle &operator=(StateHandle &&) = delete;
  ~StateHandle() {
    if (handle)
      fp8rt_state_destroy(handle);
  }
  operator fp8rt_state() const { return handle; }
  fp8rt_state *operator&() { return &handle; }

private:
  fp8rt_state handle = 0;
};

} // namespace mlir::fp8

#endif // FP8_SUPPORT_RUNTIME_H
