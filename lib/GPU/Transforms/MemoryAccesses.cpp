//===- MemoryAccesses.cpp - What an operation does with memory ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryAccesses.h"
#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "fp8/GPU/IR/FP8GPUOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fp8;

void Accesses::add(const Accesses &other) {
  isKnown &= other.isKnown;
  reads.insert(other.reads.begin(), other.reads.end());
  writes.insert(other.writes.begin(), other.writes.end());
}

bool fp8::isFunctionArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner()->isEntryBlock() &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

/// Whether memory begins with `value` that nobody changes by another value.
static bool isMemoryOfItsOwn(Value value) {
  if (isFunctionArgument(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (auto get = dyn_cast_if_present<memref::GetGlobalOp>(op)) {
    auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
        get, get.getNameAttr());
    return global && global.getConstant();
  }
  return op && hasEffect<MemoryEffects::Allocate>(op, value);
}

/// Where the memory of `value` begins, null if that may be any.
static Value findBase(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return isMemoryOfItsOwn(value) ? value : Value();
}

/// Whether bodies of `op` do nothing with memory but to read it.
static bool onlyReadsInside(Operation *op) {
  auto visit = [&](Operation *inner) {
    if (inner == op || isMemoryEffectFree(inner) ||
        inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
        hasSingleEffect<MemoryEffects::Read>(inner))
      return WalkResult::advance();
    return WalkResult::interrupt();
  };
  return !op->walk(visit).wasInterrupted();
}

Accesses fp8::findAccesses(Operation *op) {
  Accesses accesses;
  if (isMemoryEffectFree(op) || isa<memref::AllocOp>(op))
    return accesses;
  auto add = [&](llvm::SmallDenseSet<Value> &set, Value value) {
    Value base = findBase(value);
    if (base)
      set.insert(base);
    accesses.isKnown &= base != nullptr;
  };
  if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    add(accesses.reads, copy.getSource());
    add(accesses.writes, copy.getTarget());
    return accesses;
  }
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  auto launch = dyn_cast<LaunchOp>(op);
  if ((!linalgOp && !launch && !isa<memref::DeallocOp>(op)) ||
      !onlyReadsInside(op)) {
    accesses.isKnown = false;
    return accesses;
  }
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isRead =
        launch ? launch.getArgument(operand).getAccess() == KernelAccess::Read
               : linalgOp && linalgOp.isDpsInput(&operand);
    add(isRead ? accesses.reads : accesses.writes, operand.get());
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (isa<MemRefType>(value.getType()))
      add(accesses.reads, value);
  return accesses;
}

bool fp8::conflict(const Accesses &a, const Accesses &b) {
  auto meet = [](const auto &one, const auto &other) {
    return llvm::any_of(one, [&](Value base) { return other.contains(base); });
  };
  return !a.isKnown || !b.isKnown || meet(a.writes, b.writes) ||
         meet(a.writes, b.reads) || meet(a.reads, b.writes);
}
