//===- Execution.h - Run a compiled program -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_EXECUTION_H
#define FP8_TOOLS_FP8RUN_EXECUTION_H

#include "HostTensor.h"
#include "Options.h"
#include "Outputs.h"

#include <chrono>

namespace mlir::fp8 {

/// Runs the entry of a module that went through the whole pipeline, writes or
/// prints its results, and what else `options` ask for, and returns them.
/// `start` is when compiling began.
llvm::Expected<Outputs> execute(ModuleOp module, const Signature &signature,
                                ArrayRef<HostTensor> arguments,
                                std::chrono::steady_clock::time_point start,
                                const RunOptions &options);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_EXECUTION_H
