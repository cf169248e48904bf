//===- PartCall.h - Calls of a part of a graph ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph calls a part that is compiled with the same weights each time, which
// Python would lay side by side and look at for longer than the GPU computes.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_PARTCALL_H
#define FP8_PYTHON_PARTCALL_H

#include "CallMemory.h"
#include "DLPack.h"
#include "Program.h"
#include "TorchValues.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fp8py {

/// A function of rows, of what is the same for all rows, and of stored tensors,
/// for tensors of PyTorch on a GPU.
class PartCall {
public:
  /// `values` are those of a call. For each of the function's arguments:
  /// (number, kind) of a value, "full", "row", "vector" or "scalar", or
  /// (numbers, tensor), stored tensors and what the function takes for them, in
  /// their memory. For each result: (number, None), of the value whose leading
  /// sizes it has, or (None, sizes).
  PartCall(const Program &program, uint32_t function, nb::list values,
           nb::list arguments, nb::list results);
  PartCall(const PartCall &) = delete;

  /// The results, a list. None if `values` are not for this: stored tensors
  /// have to be what they were, and all values in row-major order.
  nb::object call(nb::list values);

private:
  enum class Kind { Full, Row, Vector, Scalar, Stored };
  struct Argument {
    Kind kind;
    size_t number = 0;
    /// What the function takes for stored tensors, which is kept.
    KeptTensor tensor;
    nb::object owner;
  };
  struct Stored {
    size_t number;
    KeptTensor tensor;
  };
  /// The value whose leading sizes a result has, or sizes, of which -1 stands
  /// for the rows.
  struct Result {
    int64_t number = -1;
    std::vector<int64_t> sizes;
  };

  void addArgument(nb::handle given, const TorchValues &values);
  void addResult(nb::handle given, const TorchValues &values);
  bool isFor(const TorchValues &values) const;
  nb::list makeResults(std::vector<fp8c_managed_tensor *> results,
                       const TorchValues &values) const;
  std::shared_ptr<MemoryPlan> getPlan(int64_t rows);

  Program program;
  const fp8rt_program_function *function;
  size_t numValues;
  std::vector<Argument> arguments;
  std::vector<Stored> stored;
  std::vector<Result> results;
  /// By numbers of rows.
  std::map<int64_t, std::shared_ptr<MemoryPlan>> plans;
};

void addPartCalls(nb::module_ &module);

} // namespace fp8py

#endif // FP8_PYTHON_PARTCALL_H
