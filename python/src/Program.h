//===- Program.h - Compiled programs ----------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_PROGRAM_H
#define FP8_PYTHON_PROGRAM_H

#include "fp8-c/Program.h"
#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace fp8py {
namespace nb = nanobind;

/// A program, which lives as long as a call of it, also one that was
/// interrupted.
class Program {
public:
  /// Numbers of functions, and of their arguments.
  using Places = std::set<std::pair<uint32_t, size_t>>;

  explicit Program(fp8c_program *program);

  fp8c_program *get() const { return program.get(); }
  const fp8rt_program_info &getInfo() const { return *info; }

  /// Calls a function by its index with a tuple of arrays; `state` is 0 where
  /// there is none, `stream` None for that of the arrays.
  nb::object call(uint32_t function, nb::handle arguments, nb::handle state,
                  nb::handle stream);

private:
  std::shared_ptr<fp8c_program> program;
  const fp8rt_program_info *info;
  /// Null where there are none.
  std::shared_ptr<const Places> writes;
  /// How long the last call of each function on the CPU took. Those that may
  /// take long are done by a thread.
  std::vector<std::chrono::nanoseconds> durations;
};

void addPrograms(nb::module_ &module);

} // namespace fp8py

#endif // FP8_PYTHON_PROGRAM_H
