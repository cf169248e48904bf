//===- Text.h - Words, paths and numbers of Python --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What callers give, or an ArgumentError that says what was expected: casts of
// nanobind know neither paths that are no UTF-8 nor our exceptions.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_TEXT_H
#define FP8_PYTHON_TEXT_H

#include <nanobind/nanobind.h>

#include <string>

namespace fp8py {
namespace nb = nanobind;

/// The bytes of a str, bytes or path, as the file system has them. `what` is
/// what errors call it.
std::string readText(nb::handle object, const char *what);

/// A stream of CUDA, an int.
void *readStream(nb::handle object);

/// `str(object)`, shortened as fp8.errors does.
std::string describe(nb::handle object);

} // namespace fp8py

#endif // FP8_PYTHON_TEXT_H
