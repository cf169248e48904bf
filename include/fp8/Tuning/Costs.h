//===- Costs.h - What the compiler expects of kernels -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TUNING_COSTS_H
#define FP8_TUNING_COSTS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

/// Writes, as a line of JSON, what the machine's model says of every operation
/// of a module with `fp8_gpu.target` that has a kernel, in order: an array with
/// an object for each, of its function, its kernel as tuning tables call it,
/// and the clocks of each candidate, the best first, or of the config that it
/// is pinned to.
void printCosts(ModuleOp module, raw_ostream &os);

} // namespace mlir::fp8

#endif // FP8_TUNING_COSTS_H
