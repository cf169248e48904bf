//===- FP8GPUOps.cpp - Launches of kernels --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/IR/FP8GPUOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::fp8;

#define GET_OP_CLASSES
#include "fp8/GPU/IR/FP8GPUOps.cpp.inc"

std::optional<int64_t> LaunchOp::getArgumentNumber(OpOperand &operand) {
  int64_t number = operand.getOperandNumber();
  auto ins = static_cast<int64_t>(getIns().size()),
       captures = static_cast<int64_t>(getCaptures().size());
  if (number < ins)
    return number;
  if (number < ins + captures)
    return std::nullopt;
  return number - captures;
}

KernelArgumentAttr LaunchOp::getArgument(OpOperand &operand) {
  std::optional<int64_t> number = getArgumentNumber(operand);
  return number ? getLaunch().getArgument(*number) : KernelArgumentAttr();
}

void LaunchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : (*this)->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    KernelAccess access = getArgument(operand).getAccess();
    if (access != KernelAccess::Write)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (access != KernelAccess::Read)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

LogicalResult LaunchOp::verify() {
  LaunchAttr launch = getLaunch();
  // launch_op_c2; those that are read come first.
  size_t numArguments = launch.getArguments().size();
  size_t numInputs = launch.getNumInputs();
  if (getIns().size() != numInputs ||
      getOuts().size() != numArguments - numInputs)
    return emitOpError("expected ")
           << numInputs << " ins and " << numArguments - numInputs
           << " outs, but got " << getIns().size() << " and "
           << getOuts().size();
  // launch_op_c1
  auto buffers = llvm::concat<Value>(getIns(), getOuts());
  bool onTensors = isa<TensorType>(getOuts().front().getType());
  for (Value buffer : buffers)
    if (isa<TensorType>(buffer.getType()) != onTensors)
      return emitOpError("expected ins and outs to be ")
             << (onTensors ? "tensors" : "memrefs") << ", but got "
             << buffer.getType();
  if (onTensors ? getTensors().getTypes() != getOuts().getTypes()
                : !getTensors().empty())
    return emitOpError("expected results of the types of outs that are "
                       "tensors, but got (")
           << getResultTypes() << ")";
  // launch_op_c2
  for (OpOperand &operand : (*this)->getOpOperands()) {
    KernelArgumentAttr argument = getArgument(operand);
    if (!argument)
      continue;
    auto type = cast<ShapedType>(operand.get().getType());
    if (type.getRank() != argument.getRank() ||
        type.getElementType() != argument.getElement())
      return emitOpError("expected argument '")
             << argument.getName() << "' of rank " << argument.getRank()
             << " with elements of " << argument.getElement() << ", but got "
             << type;
  }
  // launch_op_c3
  SmallVector<Type> captures = launch.getCaptureTypes();
  if (!llvm::equal(captures, getCaptures().getTypes()))
    return emitOpError("expected captures of (")
           << captures << "), but got (" << getCaptures().getTypes() << ")";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // launch_op_c4; a kernel of another module, or one that has become code, is
  // not looked into.
  Operation *kernel =
      symbolTable.lookupNearestSymbolFrom(*this, getKernelAttr());
  if (!kernel)
    return success();
  Attribute launch = kernel->getAttr(kLaunchAttrName);
  if (launch != getLaunch())
    return emitOpError("expected the launch of ")
           << getKernel() << ", but got another";
  return success();
}
