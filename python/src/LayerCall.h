//===- LayerCall.h - Calls of one layer -------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small layer on a GPU takes the host longer than the device, and most of it
// in Python. So what a layer has found once, it keeps: the function, and its
// parameters as the function takes them. A call then only looks whether all is
// as it was.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_LAYERCALL_H
#define FP8_PYTHON_LAYERCALL_H

#include "CallMemory.h"
#include "DLPack.h"
#include "Program.h"
#include "TorchValues.h"

#include <string>
#include <vector>

namespace fp8py {

/// A function of x, as rows, and a layer's parameters, for tensors of PyTorch
/// on a GPU.
class LayerCall {
public:
  /// `dtype` is PyTorch's of x. Of each parameter its name, the parameter, and
  /// what the function takes for it, which lies in its memory.
  LayerCall(const Program &program, uint32_t function, nb::object dtype,
            nb::list parameters);
  LayerCall(const LayerCall &) = delete;

  /// The result, with the leading sizes of x. None if this is not for `x`, or
  /// `parameters`, a dictionary by name, are not what they were.
  nb::object call(nb::handle x, nb::handle parameters);

private:
  struct Parameter {
    nb::object name, parameter, given;
    /// What the two are, with their sizes and strides.
    KeptTensor tensor, argument;
  };

  bool isFor(nb::handle x, const fp8c_tensor &tensor) const;
  bool isSame(const Parameter &parameter, nb::handle parameters) const;

  Program program;
  const fp8rt_program_function *function;
  nb::object dtype;
  fp8c_dtype elements;
  const ExchangeAPI *api = nullptr;
  fp8c_device device;
  std::vector<Parameter> parameters;
  MemoryPlan plan;
};

void addLayerCalls(nb::module_ &module);

} // namespace fp8py

#endif // FP8_PYTHON_LAYERCALL_H
