//===- ComputedWeights.h - Weights that a program computes ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight is often no argument itself: it is merged with another, scaled, or
// cut. And programs without marks have weights all the same. Both matter where
// a linear layer is told from attention, whose products have none.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_RECIPE_COMPUTEDWEIGHTS_H
#define FP8_LIB_TRANSFORMS_RECIPE_COMPUTEDWEIGHTS_H

#include "fp8/Analysis/GemmRoles.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::fp8 {

/// Which products of a function have a weight as an operand.
class ComputedWeights {
public:
  ComputedWeights(FunctionOpInterface function, const GemmRoles &roles);

  bool isOperandOf(linalg::LinalgOp product);
  bool isWeight(Value value) {
    return roles.isMarkedWeight(value) || getSource(value) == Source::Weight;
  }
  /// Whether one product with a weight, and biases and scales, are all that
  /// `value` is computed of, as keys are that a layer projects.
  bool isProjection(Value value);

private:
  /// What a value is computed of.
  enum class Source {
    /// Constants, and weights that are no matrices: biases, scales.
    Neutral,
    Weight,
    /// Weights by weights, as adapters are that a weight is merged with.
    ProductOfWeights,
    /// Arguments, without products.
    Input,
    Other
  };

  Source getSource(Value value);
  Source compute(Value value);
  Source getSourceOfArgument(BlockArgument argument);
  Source getSourceOfProduct(linalg::LinalgOp product);
  /// What `op` makes of `operands`, one by one or moved.
  Source combine(Operation *op, ValueRange operands);

  FunctionOpInterface function;
  const GemmRoles &roles;
  bool hasMarks = false;
  llvm::DenseMap<Value, Source> sources;
};

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_RECIPE_COMPUTEDWEIGHTS_H
