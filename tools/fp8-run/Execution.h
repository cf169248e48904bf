//===- Execution.h - Run a compiled program -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_EXECUTION_H
#define FP8_TOOLS_FP8RUN_EXECUTION_H

#include "Executable.h"
#include "HostTensor.h"
#include "Options.h"
#include "Outputs.h"

namespace mlir::fp8 {

/// Runs `executable`, writes or prints its results, and what else `options` ask
/// for, and returns them.
llvm::Expected<Outputs> execute(const Executable &executable,
                                ArrayRef<HostTensor> arguments,
                                const RunOptions &options);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_EXECUTION_H
