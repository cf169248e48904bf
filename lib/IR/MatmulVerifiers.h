//===- MatmulVerifiers.h - What matmuls have in common ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_IR_MATMULVERIFIERS_H
#define FP8_LIB_IR_MATMULVERIFIERS_H

#include "fp8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// Whether two shapes can be equal at run time.
bool areCompatible(ArrayRef<int64_t> a, ArrayRef<int64_t> b);

/// The shape of an operand with K last, whichever way it is given.
SmallVector<int64_t> getShapeWithKLast(Type type, bool isTransposed);
ScaledType getScaledWithKLast(Value operand, bool isTransposed);
/// Of codes, or of a tensor in high precision.
Type getElementTypeOfOperand(Type type);

/// What an epilogue takes and yields, and that its operands can be broadcast
/// to the result.
LogicalResult verifyEpilogue(Operation *op, Region &epilogue,
                             ValueRange operands, RankedTensorType result,
                             bool hasAmax);

} // namespace mlir::fp8

#endif // FP8_LIB_IR_MATMULVERIFIERS_H
