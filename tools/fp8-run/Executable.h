//===- Executable.h - A program that is ready to run ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_EXECUTABLE_H
#define FP8_TOOLS_FP8RUN_EXECUTABLE_H

#include "Invocation.h"
#include "fp8/Runtime/Program.h"

namespace mlir::fp8 {

/// One function, and all that is to be known to call it.
struct Executable {
  /// Compiles the entry of a module that went through the whole pipeline.
  static llvm::Expected<Executable>
  compile(ModuleOp module, const Signature &signature, bool isOnGPU);

  /// The function called `entry`, or the only one, of a shared object that
  /// fp8-compile made. Its types are in `context`.
  static llvm::Expected<Executable> load(const std::string &path,
                                         StringRef entry, MLIRContext &context);

  Signature signature;
  Invocation::Function function;
  /// Ends a step of the scaling state; null without one.
  std::function<llvm::Error(fp8rt_state, fp8rt_context *)> updateState;
  bool isOnGPU = false;
  /// Empty for a program without state.
  std::string stateManifest;
  /// The tensors whose statistics the program records.
  std::vector<std::string> statsSlots;
  /// What took `seconds`: "compile" or "load".
  StringRef making;
  double seconds = 0;
};

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_EXECUTABLE_H
