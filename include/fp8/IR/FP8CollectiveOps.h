//===- FP8CollectiveOps.h - What ranks share --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By themselves: few files need them, and FP8Ops.h is in nearly all.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8COLLECTIVEOPS_H
#define FP8_IR_FP8COLLECTIVEOPS_H

#include "fp8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// On a module or a function, the innermost wins: the group whose ranks share
/// the amaxes of whole tensors.
inline constexpr StringLiteral kAmaxGroupAttrName = "fp8.amax_group";

/// The group of the innermost operation around `op` that has one, or null.
StringAttr getAmaxGroup(Operation *op);

/// The order in which ranks meet.
struct CollectiveOrder : SideEffects::Resource::Base<CollectiveOrder> {
  StringRef getName() final { return "fp8::CollectiveOrder"; }
};

} // namespace mlir::fp8

#define GET_OP_CLASSES
#include "fp8/IR/FP8CollectiveOps.h.inc"

#endif // FP8_IR_FP8COLLECTIVEOPS_H
