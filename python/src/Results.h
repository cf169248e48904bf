//===- Results.h - Results as arrays of Python ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_RESULTS_H
#define FP8_PYTHON_RESULTS_H

#include "DLPack.h"
#include <nanobind/nanobind.h>

#include <memory>

namespace fp8py {
namespace nb = nanobind;

/// A result; the memory is freed with the last that looks at it, from any
/// thread.
using SharedTensor = std::shared_ptr<fp8c_managed_tensor>;

/// Takes a result; on the host it is in row-major order then.
SharedTensor makeShared(fp8c_managed_tensor *result);

/// A result as the kind of array that `prototype` is, or NumPy's if that is
/// null: without a copy, and what owns the memory from now on. `stream` is what
/// the call was in.
nb::object makeArray(SharedTensor result, nb::handle prototype, void *stream);

/// A result of rows as a tensor of a framework with other dimensions in place
/// of that of the rows, `numBatches` of these `sizes`. Numbers, one for each
/// row, are rows of one element.
nb::object makeBatches(SharedTensor rows, const ExchangeAPI &api,
                       const int64_t *sizes, int32_t numBatches);

void addResults(nb::module_ &module);

} // namespace fp8py

#endif // FP8_PYTHON_RESULTS_H
