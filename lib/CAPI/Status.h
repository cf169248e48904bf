//===- Status.h - Errors across the C interface -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CAPI_STATUS_H
#define FP8_LIB_CAPI_STATUS_H

#include "fp8/Runtime/Status.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <exception>
#include <new>

namespace mlir::fp8::capi {

inline fp8rt_status fail(fp8rt_status status, const llvm::Twine &message) {
  return fp8rt_set_last_error(status, message.str().c_str());
}

/// The status of a RuntimeError, FP8RT_ERROR_FILE for what a file system says,
/// and FP8RT_ERROR_INVALID_ARGUMENT for all else.
fp8rt_status fail(llvm::Error error);

/// That one of several pointers is null.
inline fp8rt_status failNull() {
  return fail(FP8RT_ERROR_INVALID_ARGUMENT,
              "expected every argument to be given, but got null");
}

/// Nothing is thrown across the interface.
template <typename Body>
fp8rt_status guard(Body &&body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fp8rt_set_last_error(FP8RT_ERROR_OUT_OF_MEMORY, "not enough memory");
  } catch (const std::exception &failure) {
    return fp8rt_set_last_error(FP8RT_ERROR_INTERNAL, failure.what());
  }
}

} // namespace mlir::fp8::capi

#endif // FP8_LIB_CAPI_STATUS_H
