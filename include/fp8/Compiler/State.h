//===- State.h - The scaling state of a program -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_STATE_H
#define FP8_COMPILER_STATE_H

#include "fp8/Compiler/Program.h"
#include "fp8/Support/Runtime.h"

#include <string>
#include <vector>

namespace mlir::fp8 {

/// A state for calls of a program; nothing for a program that takes none.
class State {
public:
  /// A new state. Errors: `function` takes one, but the program does not say
  /// what it holds.
  static llvm::Expected<State> create(const Program &program,
                                      const fp8rt_program_function &function);

  /// What calls take; 0 for nothing.
  fp8rt_state getHandle() const { return handle; }

  /// Takes over what a file holds, and returns a line for each difference;
  /// they are errors if `strict`.
  llvm::Expected<std::vector<std::string>> load(const std::string &path,
                                                bool strict);
  llvm::Error freeze();
  /// After steps on a GPU, before the state is looked at or saved: waits for
  /// `stream`, and takes the values back from the device.
  llvm::Error download(fp8rt_stream stream);
  llvm::Error save(const std::string &path) const;

private:
  StateHandle handle;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_STATE_H
