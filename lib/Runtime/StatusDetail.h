//===- StatusDetail.h - Reporting failures ----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STATUSDETAIL_H
#define FP8_LIB_RUNTIME_STATUSDETAIL_H

#include "fp8/Runtime/Status.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

namespace fp8rt::detail {

/// Keeps the message for fp8rt_get_last_error and returns `status`.
fp8rt_status fail(fp8rt_status status, std::string_view message) noexcept;

/// Runs the body of a C function: exceptions end here.
template <typename Body>
fp8rt_status guard(Body &&body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(FP8RT_ERROR_OUT_OF_MEMORY, "not enough memory");
  } catch (const std::length_error &) {
    return fail(FP8RT_ERROR_OUT_OF_MEMORY, "not enough address space");
  } catch (const std::exception &failure) {
    return fail(FP8RT_ERROR_INTERNAL, failure.what());
  }
}

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_STATUSDETAIL_H
