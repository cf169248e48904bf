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
/// The element type of codes, or of a tensor in high precision.
Type getElementTypeOfOperand(Type type);

/// What is wrong with the operands of a product, where `areMultipliable` writes
/// what is wrong with their shapes; empty if nothing is.
template <typename OpTy, typename AreMultipliable>
std::string describeOperandMismatch(OpTy op, AreMultipliable areMultipliable) {
  Type a = op.getA().getType(), b = op.getB().getType();
  std::string text;
  llvm::raw_string_ostream os(text);
  // matmul_c11, grouped_matmul_c5
  if (isa<ScaledType>(a) != isa<ScaledType>(b) ||
      (!op.isScaled() && op.getElementTypeOfA() != op.getElementTypeOfB())) {
    os << "expected a and b to be scaled, or tensors of one element type, but "
          "got '"
       << a << "' and '" << b << "'";
    return text;
  }
  if (op.isScaled())
    return OpTy::describeMismatch(op.getScaledA(), op.getScaledB(),
                                  op.getAccumulate());
  if (!areMultipliable(os, op.getShapeOfA(), op.getShapeOfB(), a, b))
    return text;
  if (op.getAccumulate() != Accumulate::Fast)
    os << "expected accumulate = fast with operands in high precision, but "
          "got promote";
  return text;
}

/// What an epilogue takes and yields, and that its operands can be broadcast
/// to the result.
LogicalResult verifyEpilogue(Operation *op, Region &epilogue,
                             ValueRange operands, RankedTensorType result,
                             bool hasAmax);

} // namespace mlir::fp8

#endif // FP8_LIB_IR_MATMULVERIFIERS_H
