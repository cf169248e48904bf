//===- GemmRoles.h - Which GEMM of a linear layer ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_GEMMROLES_H
#define FP8_ANALYSIS_GEMMROLES_H

#include "fp8/IR/FP8Attrs.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::fp8 {

class GroupedMatmulOp;

/// Finds which values of a function are gradients and which are weights, and
/// from that the role of a contraction and what its operands hold.
///
/// A value is a gradient if it depends on an argument marked `fp8.grad`. A
/// value is a weight if it is a constant, a global or an argument, seen through
/// data movement and casts, and is not marked or derived otherwise; an argument
/// marked `fp8.weight` always is. Runs in time linear in the function.
class GemmRoles {
public:
  explicit GemmRoles(FunctionOpInterface function);

  bool isGradient(Value value) const { return gradients.contains(value); }

  /// Whether `value` is `fp8.weight`, a constant or a global, through data
  /// movement and casts.
  bool isMarkedWeight(Value value) const;

  /// What `value` is a view, a permuted copy or a cast of.
  static Value getSource(Value value);

  /// Role of a contraction of `a` and `b` without an `fp8.role`: fprop if
  /// neither is a gradient; else dgrad if the other operand is a weight (or, in
  /// a function that marks no argument as one, any argument), wgrad if it is
  /// not.
  GemmRole getRole(Value a, Value b) const;
  /// The same of one whose form says which gradient it is: that of weights sums
  /// over tokens.
  GemmRole getRole(GroupedMatmulOp op) const;

  /// What the two operands of a contraction of role `role` hold. In fprop and
  /// dgrad of an unbatched contraction one operand is the weight: the marked
  /// one, else B.
  std::pair<OperandKind, OperandKind>
  getOperandKinds(Value a, Value b, GemmRole role, bool batched) const;

private:
  mutable FunctionOpInterface function;
  DenseSet<Value> gradients;
  bool hasMarkedArguments = false;
};

} // namespace mlir::fp8

#endif // FP8_ANALYSIS_GEMMROLES_H
