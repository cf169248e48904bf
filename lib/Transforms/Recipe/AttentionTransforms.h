//===- AttentionTransforms.h - Before keys are codes ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_RECIPE_ATTENTIONTRANSFORMS_H
#define FP8_LIB_TRANSFORMS_RECIPE_ATTENTIONTRANSFORMS_H

#include "fp8/IR/FP8AttentionBackwardOp.h"
#include "fp8/IR/FP8Ops.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {
struct RecipeDecision;

/// A tensor of heads in fewer dimensions, and which of the four become each.
struct HeadsView {
  Value tensor;
  SmallVector<ReassociationIndices> groups;
};

/// `heads`, of four dimensions, as rows of columns.
HeadsView viewRows(OpBuilder &b, Location loc, Value heads);

/// Keys less the mean of each head, so that what has one mean is the last
/// dimension: a pass over memory has a kernel for that.
HeadsView smoothKeys(OpBuilder &b, Location loc, Value keys,
                     AttentionLayout layout);

/// Rows of columns times a Hadamard matrix; of a query's and a key's together
/// the factor is such that products are what they were. It is symmetric, so
/// that it makes the gradient of rows of that of rotated ones, too.
Value rotateRows(OpBuilder &b, Location loc, Value rows, bool isQuery,
                 const Twine &name);

/// Gradients in the block of `op` of the same tensors, which are of its codes.
SmallVector<AttentionBackwardOp> findGradients(AttentionOp op);

/// Leaves out what would change results, with the reason.
void decideTransforms(AttentionOp op, RecipeDecision &decision);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_RECIPE_ATTENTIONTRANSFORMS_H
