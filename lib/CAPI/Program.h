//===- Program.h - What a program is ----------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CAPI_PROGRAM_H
#define FP8_LIB_CAPI_PROGRAM_H

#include "fp8-c/Program.h"
#include "fp8/Compiler/Program.h"

#include <memory>
#include <string>

struct fp8c_program {
  std::unique_ptr<mlir::fp8::Program> program;
};

struct fp8c_buffer {
  std::string contents;
};

#endif // FP8_LIB_CAPI_PROGRAM_H
