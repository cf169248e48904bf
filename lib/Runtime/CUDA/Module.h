//===- Module.h - Launches for those with a context -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_MODULE_H
#define FP8_LIB_RUNTIME_CUDA_MODULE_H

#include "Context.h"

#include "fp8/Runtime/Module.h"

#include <string_view>

namespace fp8rt::cuda {

/// Loads an image into the current context, the one of `device`. The driver's
/// default of `optLevel` is 4; it matters for PTX.
fp8rt_status loadImage(const Driver &driver, int32_t device,
                       std::string_view image, int optLevel, Module &module);

/// What fp8rt_launch and the wrappers of upstream's names both do.
Result launchKernel(const Driver &driver, Function function,
                    const fp8rt_launch_config &config, void **params,
                    void **extra, Stream stream);

Result getMaxActiveClusters(const Driver &driver, Function function,
                            const fp8rt_launch_config &config,
                            int32_t &clusters);

/// "expected config.grid[0] to be 1 or more, but got 0".
fp8rt_status checkLaunch(const fp8rt_launch_config &config);

/// Reports why a launch of a kernel in `context` failed.
fp8rt_status failLaunch(const Driver &driver, Result result,
                        const std::string &name, Context context,
                        Stream stream);

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_MODULE_H
