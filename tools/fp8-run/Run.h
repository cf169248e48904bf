//===- Run.h - What fp8-run does --------------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_RUN_H
#define FP8_TOOLS_FP8RUN_RUN_H

#include "Options.h"
#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// Compiles or loads, and runs, the program that `options` describe, or prints
/// what a phase leaves of it.
llvm::Error runProgram(const RunOptions &options);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_RUN_H
