//===- Steps.h - Runs of a program over steps -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_STEPS_H
#define FP8_COMPILER_STEPS_H

#include "fp8/Compiler/Invocation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <vector>

namespace mlir::fp8 {

struct StepOptions {
  /// How often to call; without a number once, and arguments and results have
  /// no dimension for it.
  std::optional<int64_t> count;
  /// Calls to a step of the scaling state; divides `count`.
  int64_t microbatches = 1;
};

/// Calls as often as is asked for, and `endStep` at the end of every step of
/// the scaling state. Returns the seconds of every call.
llvm::Expected<std::vector<double>>
runSteps(Invocation &invocation, const StepOptions &options, Outputs &outputs,
         llvm::function_ref<llvm::Error()> endStep);

/// The seconds of more calls with the arguments of the first step: many of a
/// short program, a few of a long one.
llvm::Expected<std::vector<double>> measure(Invocation &invocation);

} // namespace mlir::fp8

#endif // FP8_COMPILER_STEPS_H
