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
  llvm::Error save(const std::string &path) const;

private:
  StateHandle handle;
};

/// Ends a step of `state`, which was made in `stream` of `device` if the
/// program runs on a GPU: amaxes enter the histories, and the scales are those
/// of the next step. On a GPU this waits for the stream.
llvm::Error endStep(const Program &program, fp8rt_state state,
                    int32_t device = 0, fp8rt_stream stream = nullptr);

} // namespace mlir::fp8

#endif // FP8_COMPILER_STATE_H
