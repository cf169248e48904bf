//===- Errors.h - Statuses as exceptions ------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_ERRORS_H
#define FP8_PYTHON_ERRORS_H

#include "fp8/Runtime/Status.h"
#include <nanobind/nanobind.h>
// Everywhere, since a file without it compiles and throws.
#include <nanobind/stl/string.h>

#include <string>

namespace fp8py {
namespace nb = nanobind;

/// A text that may name files, whose names need not be UTF-8.
nb::object decode(const std::string &text);

/// Throws what fp8.errors makes of a status and its message.
[[noreturn]] void raise(fp8rt_status status, const std::string &message);

/// Throws for a call of this thread that failed.
inline void check(fp8rt_status status) {
  if (status != FP8RT_OK)
    raise(status, fp8rt_get_last_error());
}

} // namespace fp8py

#endif // FP8_PYTHON_ERRORS_H
