//===- FP8KernelOps.cpp - Launches of generated kernels -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"

using namespace mlir;
using namespace mlir::fp8;

void LaunchMatmulOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : (*this)->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

LogicalResult LaunchMatmulOp::verify() {
  // launch_matmul_c3
  if (getOuts().empty() || getOuts().size() > 2)
    return emitOpError("expected one or two outs, but got ")
           << getOuts().size();
  // launch_matmul_c1
  bool onTensors = isa<TensorType>(getA().getType());
  for (Value operand : getOperands())
    if (isa<ShapedType>(operand.getType()) &&
        isa<TensorType>(operand.getType()) != onTensors)
      return emitOpError("expected all operands to be ")
             << (onTensors ? "tensors" : "memrefs") << ", but got "
             << operand.getType();
  if (onTensors ? getTensors().getTypes() != getOuts().getTypes()
                : !getTensors().empty())
    return emitOpError("expected results of the types of outs that are "
                       "tensors, but got (")
           << getResultTypes() << ")";
  // launch_matmul_c2
  int64_t rank = cast<ShapedType>(getA().getType()).getRank();
  for (Value operand : {getB(), getOuts().front()})
    if (int64_t other = cast<ShapedType>(operand.getType()).getRank();
        other != rank)
      return emitOpError("expected a, b and the result to have the same rank, "
                         "but got ")
             << rank << " and " << other;
  if (rank != 2 && rank != 3)
    return emitOpError("expected a rank of 2 or 3, but got ") << rank;
  return success();
}
