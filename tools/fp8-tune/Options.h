//===- Options.h - Command line of fp8-tune ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8TUNE_OPTIONS_H
#define FP8_TOOLS_FP8TUNE_OPTIONS_H

#include "SourceProgram.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <array>
#include <optional>
#include <string>

namespace mlir::fp8 {

/// Matmuls described by the command line instead of a program.
struct ShapeOptions {
  /// Batches, or 0 for none, then M, N, K.
  llvm::SmallVector<std::array<int64_t, 4>> extents;
  std::string a = "e4m3", b = "e4m3", result = "bf16";
  std::string scales = "tensor", accumulate = "promote";
};

/// A program of these matmuls.
std::string getProgram(const ShapeOptions &shapes);

struct TuneOptions : CompilerOptions {
  ShapeOptions shapes;
  std::string output = "-";
  int64_t rounds = 9;
  /// Measure also what selection decides by rule.
  bool exhaustive = false;
  /// Print what is expected in place of measuring.
  bool costs = false;
  /// Print it for the configs of this file alone, for machines of the standard
  /// input.
  std::optional<std::string> configs;
  /// The help was asked for, and printed.
  bool help = false;
};

llvm::Expected<TuneOptions> parseOptions(int argc, char **argv);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8TUNE_OPTIONS_H
