//===- TorchValues.h - Tensors of PyTorch in a call -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_TORCHVALUES_H
#define FP8_PYTHON_TORCHVALUES_H

#include "DLPack.h"

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp8py {
namespace nb = nanobind;

/// Tensors of PyTorch, while a call lasts. None stays out.
struct TorchValues {
  /// Whether all are such tensors in row-major order, whose memory says all of
  /// them.
  bool set(nb::list list);

  const ExchangeAPI *api = nullptr;
  std::vector<fp8c_tensor> tensors;
};

/// A tensor that is remembered, with sizes and strides of its own.
struct KeptTensor {
  KeptTensor() = default;
  explicit KeptTensor(const fp8c_tensor &tensor);
  KeptTensor(KeptTensor &&) = default;
  KeptTensor &operator=(KeptTensor &&) = default;

  fp8c_tensor tensor = {};
  std::vector<int64_t> extents;
};

char *getData(const fp8c_tensor &tensor);
bool isSameType(fp8c_dtype a, fp8c_dtype b);
bool isSameDevice(fp8c_device a, fp8c_device b);
/// Whether a tensor is what it was, but for what is in its memory.
bool isSameTensor(const fp8c_tensor &a, const fp8c_tensor &b);

} // namespace fp8py

#endif // FP8_PYTHON_TORCHVALUES_H
