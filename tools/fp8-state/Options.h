//===- Options.h - Command line of fp8-state --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8STATE_OPTIONS_H
#define FP8_TOOLS_FP8STATE_OPTIONS_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir::fp8 {

struct StateOptions {
  /// `Help` was asked for, and has been printed.
  enum Command { Help, Print, Compare, Edit };
  Command command = Help;
  std::vector<std::string> files;

  std::string slots = "*";
  bool history = false;
  bool json = false;

  double tolerance = 0;

  std::string out;
  std::vector<std::string> removals;
  std::optional<int64_t> amaxHistoryLen;
  std::vector<std::string> resets;
  std::vector<std::pair<std::string, float>> scales;
  std::vector<std::pair<std::string, std::string>> renamings;
};

llvm::Expected<StateOptions> parseOptions(int argc, char **argv);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8STATE_OPTIONS_H
