//===- EndlessCalls.h - Calls that never return -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_COMPILER_ENDLESSCALLS_H
#define FP8_LIB_COMPILER_ENDLESSCALLS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

/// Reports a function that calls itself, or others that call it, whatever its
/// arguments are: the program would end where the stack does. Calls that
/// depend on a condition are not looked at, so that recursion which ends is
/// taken.
LogicalResult checkEndlessCalls(ModuleOp module);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_ENDLESSCALLS_H
