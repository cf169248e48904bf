//===- ContextDetail.h - Failures of a program's context --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_CONTEXTDETAIL_H
#define FP8_LIB_RUNTIME_CUDA_CONTEXTDETAIL_H

#include "fp8/Runtime/Context.h"

#include <functional>

namespace fp8rt::detail {

/// Runs `body` unless the context is null or has failed, and fails it with what
/// that returns.
void runInContext(fp8rt_context *context,
                  const std::function<fp8rt_status()> &body) noexcept;

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_CUDA_CONTEXTDETAIL_H
