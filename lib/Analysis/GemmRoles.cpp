//===- GemmRoles.cpp - Which GEMM of a linear layer -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/GemmRoles.h"
#include "fp8/IR/FP8Ops.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::fp8;

GemmRoles::GemmRoles(FunctionOpInterface function) : function(function) {
  if (function.isExternal())
    return;
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    hasMarkedArguments |= !!function.getArgAttr(number, kWeightAttrName);
    if (function.getArgAttr(number, kGradAttrName))
      gradients.insert(argument);
  }
  if (gradients.empty())
    return;
  // Whatever is computed from a gradient is one. Values of a region also
  // depend on what its operation reads, and carried values go around a loop:
  // repeat until nothing is added.
  bool changed = true;
  auto add = [&](Value value) { changed |= gradients.insert(value).second; };
  while (changed) {
    changed = false;
    function->walk<WalkOrder::PreOrder>([&](Operation *op) {
      bool depends = llvm::any_of(op->getOperands(), [&](Value operand) {
        return gradients.contains(operand);
      });
      if (!depends)
        return;
      auto addAll = [&](Operation *dependent) {
        llvm::for_each(dependent->getResults(), add);
        if (!isa<linalg::LinalgOp>(dependent))
          for (Region &region : dependent->getRegions())
            llvm::for_each(region.getArguments(), add);
      };
      addAll(op);
      if (op->hasTrait<OpTrait::IsTerminator>() &&
          op->getParentOp() != function.getOperation())
        addAll(op->getParentOp());
    });
  }
}

Value GemmRoles::getSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
            tensor::ExtractSliceOp, tensor::PadOp, linalg::TransposeOp,
            DequantizeOp, TransposeOp>(op)) {
      value = op->getOperand(0);
      continue;
    }
    // A generic that only casts or permutes: its terminator yields its single
    // input, through casts.
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || generic.getNumDpsInputs() != 1)
      break;
    Value yielded = generic.getBody()->getTerminator()->getOperand(0);
    while (Operation *cast = yielded.getDefiningOp()) {
      if (!isa<arith::ExtFOp, arith::TruncFOp>(cast))
        break;
      yielded = cast->getOperand(0);
    }
    if (yielded != generic.getBody()->getArgument(0))
      break;
    value = generic.getDpsInputOperand(0)->get();
  }
  return value;
}

bool GemmRoles::isMarkedWeight(Value value) const {
  value = getSource(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner()->getParentOp() == function.getOperation() &&
           argument.getOwner()->isEntryBlock() &&
           function.getArgAttr(argument.getArgNumber(), kWeightAttrName);
  Operation *op = value.getDefiningOp();
  return op->hasTrait<OpTrait::ConstantLike>() ||
         op->getName().getStringRef() == "ml_program.global_load_const";
}

GemmRole GemmRoles::getRole(Value a, Value b) const {
  bool aGrad = isGradient(a), bGrad = isGradient(b);
  if (!aGrad && !bGrad)
    return GemmRole::Fprop;
  Value other = aGrad ? b : a;
  if (aGrad && bGrad)
    return GemmRole::Wgrad;
  Value source = getSource(other);
  auto argument = dyn_cast<BlockArgument>(source);
  bool isArgument =
      argument && argument.getOwner()->getParentOp() == function.getOperation();
  return isMarkedWeight(other) || (isArgument && !hasMarkedArguments)
             ? GemmRole::Dgrad
             : GemmRole::Wgrad;
}

GemmRole GemmRoles::getRole(GroupedMatmulOp op) const {
  if (!isGradient(op.getA()) && !isGradient(op.getB()))
    return GemmRole::Fprop;
  return op.sumsGroups() ? GemmRole::Wgrad : GemmRole::Dgrad;
}

std::pair<OperandKind, OperandKind>
GemmRoles::getOperandKinds(Value a, Value b, GemmRole role,
                           bool batched) const {
  auto kindOf = [&](Value value, bool weight) {
    if (isGradient(value))
      return OperandKind::Gradient;
    return weight ? OperandKind::Weight : OperandKind::Activation;
  };
  // A batched product multiplies two activations, as in attention.
  bool hasWeight = role != GemmRole::Wgrad && !batched;
  bool aIsWeight = hasWeight && ((isMarkedWeight(a) && !isMarkedWeight(b)) ||
                                 (isGradient(b) && !isGradient(a)));
  bool bIsWeight = hasWeight && !aIsWeight;
  std::pair<OperandKind, OperandKind> kinds{kindOf(a, aIsWeight),
                                            kindOf(b, bIsWeight)};
  // A role set by hand says that there is a gradient even if no argument is
  // marked: by convention A holds dy.
  if (role != GemmRole::Fprop && !isGradient(a) && !isGradient(b))
    kinds.first = OperandKind::Gradient;
  return kinds;
}
