//===- CompileHost.h - Programs as objects ----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_COMPILER_COMPILEHOST_H
#define FP8_LIB_COMPILER_COMPILEHOST_H

#include "fp8/Compiler/Compile.h"

namespace mlir::fp8 {

/// The host's code as an object, or as LLVM IR; seen as `variant`, if it is
/// one.
llvm::Expected<CompiledProgram>
compileHost(ModuleOp module, const CompileOptions &options, func::FuncOp entry,
            bool emitLLVM, std::optional<ProgramVariant> variant = {});

/// A program for several GPUs, which `options.target` lists.
llvm::Expected<CompiledProgram> compileVariants(ModuleOp module,
                                                const CompileOptions &options,
                                                func::FuncOp entry);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_COMPILEHOST_H
