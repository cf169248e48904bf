//===- FatalErrors.h - How a tool ends when LLVM gives up -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_SUPPORT_FATALERRORS_H
#define FP8_TOOLS_SUPPORT_FATALERRORS_H

namespace mlir::fp8 {

/// Makes errors that LLVM cannot return, such as those of a standard output
/// that is full or closed, errors of `tool` like others: one line, and status
/// 1. Temporary files are removed.
void handleFatalErrors(const char *tool);

} // namespace mlir::fp8

#endif // FP8_TOOLS_SUPPORT_FATALERRORS_H
