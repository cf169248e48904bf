//===- InputFile.h - Reading what somebody names ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_INPUTFILE_H
#define FP8_SUPPORT_INPUTFILE_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::fp8 {

/// All of a file, or of a pipe that somebody writes to, such as a shell's
/// <(COMMAND). Nothing that might never end is waited for: a pipe that has no
/// writer, a socket, a device and a folder are errors; /dev/null is empty. The
/// error does not name the file.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInputFile(StringRef path);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_INPUTFILE_H
