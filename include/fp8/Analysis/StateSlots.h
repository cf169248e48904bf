//===- StateSlots.h - What a program keeps from step to step ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names and numbers for the scaling state of a module. Slots are named first
// and numbered afterwards. A *scope* is code whose slots lie together: a
// function, or the body of a loop with separate slots. In it a slot has an
// offset; a call or such a loop is a run of offsets.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_STATESLOTS_H
#define FP8_ANALYSIS_STATESLOTS_H

#include "fp8/IR/FP8Ops.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::func {
class CallOp;
class FuncOp;
} // namespace mlir::func
namespace mlir::scf {
class ForOp;
} // namespace mlir::scf

namespace mlir::fp8 {

/// The argument of `function` that says whether this is the first micro-batch
/// of a step; null if there is none.
Value getFirstMicrobatch(func::FuncOp function);

/// The slots of a scope by offset, and what has which.
struct StateScope {
  /// Names are relative to the scope.
  SmallVector<SlotAttr> slots;
  /// First offset of a quantize, of a call of a function with slots relative to
  /// its caller's, or of a loop with separate slots.
  llvm::MapVector<Operation *, int64_t> offsets;
  /// Quantizes that only read their slot.
  DenseSet<Operation *> readOnly;
  /// What a name was given to: a quantize, a call or a loop.
  llvm::StringMap<Operation *> owners;
  /// Whether it has slots or calls functions whose slots have fixed places.
  bool needsState = false;
};

class StateSlots {
public:
  /// With `cacheWeights` weights get a cache in functions that know which
  /// micro-batch is the first.
  explicit StateSlots(bool cacheWeights) : cacheWeights(cacheWeights) {}

  /// Finds the slots of all functions of `module`; reports what cannot have a
  /// slot, or not one of its own, at the operation.
  LogicalResult compute(ModuleOp module);

  /// The scope of a function or of a loop with separate slots; null if it needs
  /// no state.
  const StateScope *lookup(Operation *op) const;

  /// The function that `call` calls; null if it has no body.
  func::FuncOp getCallee(func::CallOp call);

  /// Whether `function` has slots in places that its callers choose.
  bool isRelative(func::FuncOp function) const;

  /// For a function with fixed places, the index in the table of every offset.
  ArrayRef<int64_t> getIndices(func::FuncOp function) const;

  /// The table; null if there are no slots.
  StateTableAttr getTable() const;

private:
  LogicalResult checkRecipe(QuantizeOp op);
  LogicalResult collect(func::FuncOp function);
  LogicalResult collect(Region &region, StateScope &scope);
  LogicalResult add(QuantizeOp op, StateScope &scope);
  LogicalResult add(func::CallOp op, StateScope &scope);
  LogicalResult add(scf::ForOp op, StateScope &scope);
  LogicalResult addRun(Operation *op, StringRef name, ArrayRef<SlotAttr> slots,
                       StateScope &scope);
  LogicalResult assign(func::FuncOp function);

  bool cacheWeights;
  SymbolTableCollection symbols;
  DenseMap<Operation *, std::unique_ptr<StateScope>> scopes;
  /// Functions whose scope is being collected.
  DenseSet<Operation *> active;
  SmallVector<std::pair<Operation *, Operation *>> recursiveCalls;
  DenseMap<Operation *, SmallVector<int64_t>> indices;
  SmallVector<Attribute> table;
  llvm::StringMap<std::pair<int64_t, Operation *>> tableByName;
  RecipeAttrInterface recipe;
  std::optional<Location> recipeLoc;
};

} // namespace mlir::fp8

#endif // FP8_ANALYSIS_STATESLOTS_H
