//===- SplitFunctions.h - Long functions in pieces --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TARGET_CPU_SPLITFUNCTIONS_H
#define FP8_LIB_TARGET_CPU_SPLITFUNCTIONS_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::fp8 {

/// Makes `module`, which is not optimized yet, one whose size LLVM takes time
/// in proportion to: no blocks of many thousands of instructions, which become
/// calls of functions with a part each, and no arguments that nobody reads.
void cutLongFunctions(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace mlir::fp8

#endif // FP8_LIB_TARGET_CPU_SPLITFUNCTIONS_H
