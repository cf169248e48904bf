//===- SavedState.h - A state from a file -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libfp8rt's C interface to states, with errors and lifetimes of C++.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8STATE_SAVEDSTATE_H
#define FP8_TOOLS_FP8STATE_SAVEDSTATE_H

#include "fp8/Runtime/ScalingState.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <utility>
#include <vector>

namespace mlir::fp8 {

/// The error of a call that returned `status`; none if that is FP8RT_OK.
llvm::Error makeError(fp8rt_status status);

/// A state that is destroyed with this object.
class StateHandle {
public:
  StateHandle() = default;
  StateHandle(StateHandle &&other) noexcept
      : handle(std::exchange(other.handle, 0)) {}
  StateHandle &operator=(StateHandle &&) = delete;
  ~StateHandle() {
    if (handle)
      fp8rt_state_destroy(handle);
  }
  operator fp8rt_state() const { return handle; }
  fp8rt_state *operator&() { return &handle; }

private:
  fp8rt_state handle = 0;
};

/// All that a state holds for a slot.
struct SavedSlot {
  std::string name, format, role, operand;
  fp8rt_state_statistics statistics;
  /// The amax that waits for an update.
  float waiting;
  /// Oldest first.
  std::vector<float> history;
};

/// What a file holds.
struct SavedState {
  static llvm::Expected<SavedState> open(const std::string &path);

  /// The indices of the slots that `glob` names; an error if there is none.
  llvm::Expected<std::vector<size_t>> select(llvm::StringRef glob) const;
  /// "; did you mean 'x'?" with the name that is nearest to `name`, if any is
  /// near.
  std::string suggest(llvm::StringRef name) const;

  std::string path;
  int64_t steps;
  /// As in ScalingState.h, with every key.
  llvm::json::Object manifest;
  std::vector<SavedSlot> slots;
};

/// The keys of a manifest that make up the recipe, as recipes write them.
inline constexpr llvm::StringLiteral kRecipeKeys[] = {
    "amax_history_len", "amax_compute_algo",
    "margin",           "reduce_amax",
    "compat",           "pow2"};

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8STATE_SAVEDSTATE_H
