//===- Commands.h - What fp8-state does -------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8STATE_COMMANDS_H
#define FP8_TOOLS_FP8STATE_COMMANDS_H

#include "Options.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fp8 {

llvm::Error printState(const StateOptions &options, llvm::raw_ostream &os);

/// Whether the two files hold the same.
llvm::Expected<bool> compareStates(const StateOptions &options,
                                   llvm::raw_ostream &os);

llvm::Error editState(const StateOptions &options);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8STATE_COMMANDS_H
