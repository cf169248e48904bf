//===- Compile.h - From a program to what was asked for ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8COMPILE_COMPILE_H
#define FP8_TOOLS_FP8COMPILE_COMPILE_H

#include "Options.h"

namespace mlir::fp8 {

/// Compiles the program and writes what `options` ask for. Errors in the
/// program have been reported through MLIR's diagnostics when this returns
/// false; all others are returned.
llvm::Expected<bool> compileFile(const CompileOptions &options);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8COMPILE_COMPILE_H
