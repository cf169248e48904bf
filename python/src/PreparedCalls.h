//===- PreparedCalls.h - Calls like those before ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer, or a part of a graph, calls few functions again and again. Which one
// it is, and in which order that takes tensors, is found by Python once.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_PREPAREDCALLS_H
#define FP8_PYTHON_PREPAREDCALLS_H

#include "CallMemory.h"
#include "DLPack.h"
#include "State.h"

#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace fp8py {

/// What was prepared, for tensors of PyTorch on a GPU, of which nobody asks for
/// a gradient: who calls has one for what the functions compute.
class PreparedCalls {
public:
  /// `kind` is the caller's number of a function. What is added is for values
  /// of the types and the device of these, the first of which has as many rows;
  /// `order` are the numbers of those that the function takes.
  void add(uint32_t kind, nb::list values, const Program &program,
           uint32_t function, std::vector<uint32_t> order, nb::object state);

  /// The results, a list, for values in row-major order. With `endsStep` a step
  /// of the state ends behind the call. None where nothing was added for them.
  nb::object run(uint32_t kind, nb::list values, bool endsStep);

private:
  /// The kind, the rows of the first value, and the types of both of the first
  /// two: all others have that of one of them.
  using Key = std::tuple<uint32_t, int64_t, uint32_t, uint32_t>;
  struct Function {
    Program program;
    const fp8rt_program_function *function;
    std::vector<uint32_t> order;
    size_t numValues;
    fp8c_device device;
    nb::object state;
    std::shared_ptr<MemoryPlan> plan;
  };

  std::map<Key, Function> functions;
};

void addPreparedCalls(nb::module_ &module);

} // namespace fp8py

#endif // FP8_PYTHON_PREPAREDCALLS_H
