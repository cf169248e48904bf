//===- AttentionBatches.h - Heads of attention as batches -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONBATCHES_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONBATCHES_H

#include "fp8/IR/FP8Ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {

/// An attention as batches, one for each head of Q of each batch: its operands
/// and results so, and what is computed of their elements and rows.
class AttentionBatches {
public:
  AttentionBatches(RewriterBase &b, AttentionOp op)
      : b(b), op(op), loc(op.getLoc()) {}

protected:
  using Body = llvm::function_ref<Value(ValueRange)>;

  /// Batches x rows x columns of an operand: codes and factors, or numbers.
  /// Heads of K and V come once for each head of Q that reads them.
  Value toBatches(Value operand);
  /// How many positions of an operand share a factor, 0 where all do. Codes of
  /// such operands are batches with the factor 1.
  int64_t getPositionsOfFactor(Value operand);
  /// Their factors, batches x blocks x 1.
  Value getFactorsOfPositions(Value operand);
  /// That (f32) of position `position` (index) of this element, within `map`.
  Value readFactor(Value factors, int64_t positions, Value position);
  Value fromBatches(Value tensor);
  /// The number of keys of all batches (index).
  Value getNumKeys();

  /// Element by element; sources of a dimension less are of rows.
  Value map(ValueRange sources, Type element, Body body);
  /// All elements of each row, f32.
  Value reduce(Value source, float neutral,
               llvm::function_ref<Value(Value, Value)> combine);

  /// The batch and the head (index) of this element, within `map`.
  Value getBatch();
  Value getHead();

  Value f32(float value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value toF32(Value value) {
    return value.getType().isF32()
               ? value
               : arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  }
  int64_t getHeads(Value operand) {
    return AttentionOp::getShapeOf(operand)[op.getHeadDim()];
  }
  /// A dimension of Q or K (index).
  Value getExtent(Value operand, int64_t dim) {
    if (auto scaled = dyn_cast<ScaledType>(operand.getType()))
      operand = DisassembleOp::create(b, loc, operand).getPayload();
    return tensor::DimOp::create(b, loc, operand, dim);
  }

  RewriterBase &b;
  AttentionOp op;
  Location loc;

private:
  /// Pages of K or of V as keys of batches.
  Value gatherPages(Value pages);
  /// `isWhole` if it is one element for the whole operand.
  Value spread(Value tensor, bool isWhole = false);
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONBATCHES_H
