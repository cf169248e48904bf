//===- State.h - Scaling states ---------------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_STATE_H
#define FP8_PYTHON_STATE_H

#include "Program.h"

#include "fp8/Runtime/ScalingState.h"
#include "fp8/Runtime/Stream.h"

namespace fp8py {

/// A state of a program, which it keeps, since it is updated by it.
class State {
public:
  explicit State(const Program &program);
  ~State();
  State(const State &) = delete;

  fp8rt_state get() const { return state; }
  const Program &getProgram() const { return program; }

  /// Where the last call was, so that what follows it is there too; before one,
  /// where the state is to be.
  int32_t device = 0;
  fp8rt_stream stream = nullptr;

private:
  Program program;
  fp8rt_state state = 0;
};

void addStates(nb::module_ &module);

} // namespace fp8py

#endif // FP8_PYTHON_STATE_H
