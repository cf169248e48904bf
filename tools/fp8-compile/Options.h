//===- Options.h - Command line of fp8-compile ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8COMPILE_OPTIONS_H
#define FP8_TOOLS_FP8COMPILE_OPTIONS_H

#include "SourceProgram.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::fp8 {

enum class Emit { SharedObject, Object, LLVM, PTX, Cubin, MLIR };

/// Empty strings are options that were not given.
struct EmitOptions : CompilerOptions {
  Emit emit = Emit::SharedObject;
  std::string output;
  std::string header;
  /// The help was asked for, and printed.
  bool help = false;
};

/// Every option has its final value then: what depends on others is derived.
llvm::Expected<EmitOptions> parseOptions(int argc, char **argv);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8COMPILE_OPTIONS_H
