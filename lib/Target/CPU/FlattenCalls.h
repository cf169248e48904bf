//===- FlattenCalls.h - Calls with thousands of values ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TARGET_CPU_FLATTENCALLS_H
#define FP8_LIB_TARGET_CPU_FLATTENCALLS_H

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::fp8 {

/// Makes `module`, which is not optimized yet, one without values of thousands
/// of parts and calls with thousands of arguments, for which LLVM takes time
/// that grows with their square. What a function is given in memory it reads
/// where it needs it, and what it returns it writes part by part.
void flattenCalls(llvm::Module &module);

} // namespace mlir::fp8

#endif // FP8_LIB_TARGET_CPU_FLATTENCALLS_H
