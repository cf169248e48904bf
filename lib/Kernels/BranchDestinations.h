//===- BranchDestinations.h - One memory for both branches ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BRANCHDESTINATIONS_H
#define FP8_LIB_KERNELS_BRANCHDESTINATIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

/// Has both branches of an `scf.if` that launch kernels for the same result
/// write to the same memory, which is there before.
void shareDestinations(ModuleOp module);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BRANCHDESTINATIONS_H
