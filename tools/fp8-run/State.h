//===- State.h - The scaling state of a program -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_STATE_H
#define FP8_TOOLS_FP8RUN_STATE_H

#include "Options.h"
#include "StateContents.h"
#include "fp8/Runtime/Context.h"
#include "fp8/Target/Program/Signature.h"

#include <functional>

namespace mlir::fp8 {

class Device;
struct Executable;

/// The state that a compiled program takes as its last argument; nothing for a
/// program that takes none.
class State {
public:
  /// Makes the state that the program takes, if any, and loads and freezes it
  /// as `options` ask for. What the file lacks or has more is a
  /// warning.
  static llvm::Expected<State> create(const Executable &executable,
                                      const RunOptions &options);

  /// What the program takes, or null.
  fp8rt_state_rows *getRows() { return handle ? &rows : nullptr; }

  /// Moves the state to a device, which is there as long as steps are made.
  llvm::Error moveTo(Device &target);
  llvm::Error endStep();
  /// To look at the state, or to save it.
  llvm::Error moveToHost();
  llvm::Error save(const std::string &path) const;
  llvm::Error print(llvm::raw_ostream &os) const;

private:
  llvm::Error load(const std::string &path, bool strict);

  StateHandle handle;
  fp8rt_state_rows rows;
  std::function<llvm::Error(fp8rt_state, fp8rt_context *)> update;
  Device *device = nullptr;
};

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_STATE_H
