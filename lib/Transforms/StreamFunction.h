//===- StreamFunction.h - A pass over memory, a tile at a time --*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_STREAMFUNCTION_H
#define FP8_LIB_TRANSFORMS_STREAMFUNCTION_H

#include "StreamTiling.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// A private function that takes the inputs of `stream` and memory for results,
/// and returns the results, in that memory: a loop over tiles, with the body's
/// operations on each. It is in no module yet.
func::FuncOp buildStreamFunction(OpBuilder &b, StreamOp stream,
                                 const StreamTiling &tiling, const Twine &name);

/// The memory that the function of `stream` takes when it is called with
/// `inputs`.
SmallVector<Value> createStreamMemory(OpBuilder &b, StreamOp stream,
                                      const StreamTiling &tiling,
                                      ValueRange inputs);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_STREAMFUNCTION_H
