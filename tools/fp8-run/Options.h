//===- Options.h - Command line of fp8-run ----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_OPTIONS_H
#define FP8_TOOLS_FP8RUN_OPTIONS_H

#include "SourceProgram.h"
#include "fp8/Compiler/Steps.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::fp8 {

/// Empty strings are options that were not given.
struct RunOptions : CompilerOptions {
  std::string entry;
  std::string inputs;
  bool ignoreExtraInputs = false;
  std::string outputs;
  std::string compileTo;
  StepOptions steps;
  std::string stateIn;
  std::string stateOut;
  bool stateStrict = false;
  bool freeze = false;
  /// The target to compare the results with.
  std::string compare;
  double tolerance = 1e-2;
  /// Write no results.
  bool quiet = false;
  bool time = false;
  bool profile = false;
  /// Where to write the profile's trace.
  std::string trace;
  /// The first option, as it was given, that has a say in compiling.
  std::string compiling;
  /// The help was asked for, and printed.
  bool help = false;
};

llvm::Expected<RunOptions> parseOptions(int argc, char **argv);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_OPTIONS_H
