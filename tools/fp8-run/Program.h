//===- Program.h - A compiled program ---------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_PROGRAM_H
#define FP8_TOOLS_FP8RUN_PROGRAM_H

#include "Options.h"
#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// Compiles and runs, or prints, the program that `options` describe. Errors
/// in the program have been reported through MLIR's diagnostics when this
/// returns false; all others are returned.
llvm::Expected<bool> runProgram(const RunOptions &options);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_PROGRAM_H
