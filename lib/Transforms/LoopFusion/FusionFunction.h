//===- FusionFunction.h - A pass over memory, a tile at a time --*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_LOOPFUSION_FUSIONFUNCTION_H
#define FP8_LIB_TRANSFORMS_LOOPFUSION_FUSIONFUNCTION_H

#include "FusionTiling.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// A private function that takes the inputs of `fusion` and memory for results,
/// and returns the results, in that memory: a loop over tiles, with the body's
/// operations on each. It is in no module yet.
func::FuncOp buildFusionFunction(OpBuilder &b, FusionOp fusion,
                                 const FusionTiling &tiling, const Twine &name);

/// The memory that the function of `fusion` takes when it is called with
/// `inputs`.
SmallVector<Value> createFusionMemory(OpBuilder &b, FusionOp fusion,
                                      const FusionTiling &tiling,
                                      ValueRange inputs);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_LOOPFUSION_FUSIONFUNCTION_H
