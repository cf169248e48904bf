//===- BranchDestinations.cpp - One memory for both branches --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bufferization takes results of two branches in memory of two for tensors of
// any layout, which are copied before anybody reads them.
//
//===----------------------------------------------------------------------===//

#include "BranchDestinations.h"
#include "fp8/GPU/IR/FP8GPUOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

#include <functional>

using namespace mlir;
using namespace mlir::fp8;

/// Where a launch, or each one that may be taken, writes `value`, if that is
/// memory of `block`; null otherwise.
static tensor::EmptyOp getDestination(Value value, Block *block) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return {};
  unsigned number = result.getResultNumber();
  if (auto launch = dyn_cast<LaunchOp>(result.getOwner())) {
    auto empty = launch.getOuts()[number].getDefiningOp<tensor::EmptyOp>();
    return empty && empty->getBlock() == block ? empty : tensor::EmptyOp();
  }
  auto choice = dyn_cast<scf::IfOp>(result.getOwner());
  if (!choice)
    return {};
  tensor::EmptyOp few =
      getDestination(choice.thenYield().getOperand(number), block);
  return few && few == getDestination(choice.elseYield().getOperand(number),
                                      block)
             ? few
             : tensor::EmptyOp();
}

/// Moves what computes `value` in front of `choice`; false if it has to stay.
static bool hoist(Value value, scf::IfOp choice) {
  llvm::SetVector<Operation *> moved;
  std::function<bool(Value)> collect = [&](Value value) {
    Operation *op = value.getDefiningOp();
    Operation *parent = value.getParentBlock()->getParentOp();
    if (!choice->isAncestor(parent))
      return true;
    if (!op || !isPure(op) || op->getNumRegions() != 0 ||
        !llvm::all_of(op->getOperands(), collect))
      return false;
    moved.insert(op);
    return true;
  };
  if (!collect(value))
    return false;
  for (Operation *op : moved)
    op->moveBefore(choice);
  return true;
}

void fp8::shareDestinations(ModuleOp module) {
  // Outer ones last: what an inner one shares is in the outer one's branch.
  module.walk([&](scf::IfOp choice) {
    for (unsigned i = 0; i < choice.getNumResults(); ++i) {
      tensor::EmptyOp ofThen =
          getDestination(choice.thenYield().getOperand(i), choice.thenBlock());
      tensor::EmptyOp ofElse =
          getDestination(choice.elseYield().getOperand(i), choice.elseBlock());
      if (!ofThen || !ofElse || ofThen.getType() != ofElse.getType() ||
          !llvm::all_of(ofThen.getDynamicSizes(),
                        [&](Value size) { return hoist(size, choice); }))
        continue;
      ofThen->moveBefore(choice);
      ofElse.replaceAllUsesWith(ofThen.getResult());
      ofElse.erase();
    }
  });
}
