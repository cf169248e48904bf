//===- EmitKernels.h - The kernels of a program -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_COMPILER_EMITKERNELS_H
#define FP8_LIB_COMPILER_EMITKERNELS_H

#include "fp8/Compiler/Compile.h"

namespace mlir::fp8 {

/// The kernels as CodeKind::PTX or CodeKind::Cubin.
llvm::Expected<std::string> emitKernels(ModuleOp module, CodeKind kind,
                                        const CompileOptions &options);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_EMITKERNELS_H
