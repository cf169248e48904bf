//===- Tune.h - Measure a program's kernels, then compile it ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_COMPILER_TUNE_H
#define FP8_LIB_COMPILER_TUNE_H

#include "fp8/Compiler/Compile.h"

namespace mlir::fp8 {

/// Whether kernels are to be measured.
bool isTuned(const CompileOptions &options);

/// With `options.tune`, for a GPU: measures the best few configs of each kernel
/// that the table lacks, keeps the fastest there, and names the table as that
/// of `kernel-table`. `module` stays as it is. Remarks say what was measured.
llvm::Expected<CompileOptions> tuneKernels(ModuleOp module,
                                           CompileOptions options);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_TUNE_H
