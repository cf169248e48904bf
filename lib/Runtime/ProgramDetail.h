//===- ProgramDetail.h - What all sorts of programs share -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_PROGRAMDETAIL_H
#define FP8_LIB_RUNTIME_PROGRAMDETAIL_H

#include "fp8/Runtime/Program.h"

namespace fp8rt::detail {

/// Whether this library can run a program of that description.
fp8rt_status checkProgram(const fp8rt_program_info &info);

/// Calls a function that has no destructors to run where a program gives up.
/// If one does, returns why; the message is the thread's until the next time.
fp8rt_status runInFrame(void (*function)(void *), void *data,
                        const char *&message);

/// Returns from the thread's innermost runInFrame; outside of one, ends the
/// process.
[[noreturn]] void giveUp(fp8rt_status status, const char *message);

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_PROGRAMDETAIL_H
