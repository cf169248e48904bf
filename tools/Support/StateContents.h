//===- StateContents.h - What a scaling state holds -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_SUPPORT_STATECONTENTS_H
#define FP8_TOOLS_SUPPORT_STATECONTENTS_H

#include "fp8/Support/Runtime.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace mlir::fp8 {

/// All that a state holds for a slot.
struct SlotContents {
  std::string name, format, role, operand;
  fp8rt_state_statistics statistics;
  /// The amax that waits for an update.
  float waiting;
  /// Oldest first, of the recipe delayed.
  std::vector<float> history;
  /// What any other recipe keeps.
  std::vector<int32_t> words;
};

/// All that a state holds.
struct StateContents {
  static llvm::Expected<StateContents> open(const std::string &path);
  static llvm::Expected<StateContents> read(fp8rt_state state);

  /// The indices of the slots that `glob` names; an error if there is none.
  llvm::Expected<std::vector<size_t>> select(llvm::StringRef glob) const;
  /// "; did you mean 'x'?" with the name that is nearest to `name`, if any is
  /// near.
  std::string suggest(llvm::StringRef name) const;

  /// Empty for a state that is from no file.
  std::string path;
  int64_t steps;
  /// Its name and options, as on a command line.
  std::string recipe;
  /// As in ScalingState.h, with every key.
  llvm::json::Object manifest;
  std::vector<SlotContents> slots;
};

/// Six digits.
std::string formatAmax(float value);

/// Prints a row for each of `slots`, of the state's, with its statistics.
void printSlots(const StateContents &state, llvm::ArrayRef<size_t> slots,
                llvm::raw_ostream &os);

} // namespace mlir::fp8

#endif // FP8_TOOLS_SUPPORT_STATECONTENTS_H
