//===- BuildStateUpdate.cpp - The end of a step as a function -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: a module with a table of slots. Leaves: the same with a function that
// updates them all.
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_BUILDSTATEUPDATEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct BuildStateUpdatePass
    : fp8::impl::BuildStateUpdatePassBase<BuildStateUpdatePass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// The slots that calls of `function` record, in order; nothing if that does
/// not follow from its constants.
static std::optional<SmallVector<int64_t>> getRecorded(func::FuncOp function) {
  llvm::SmallSetVector<int64_t, 8> slots;
  WalkResult result = function.walk([&](Operation *op) {
    if (auto record = dyn_cast<RecordAmaxOp>(op)) {
      std::optional<int64_t> slot = getConstantIntValue(record.getSlot());
      if (slot)
        slots.insert(*slot);
      return slot ? WalkResult::advance() : WalkResult::interrupt();
    }
    return WalkResult(
        failure(isa<CallOpInterface>(op) &&
                llvm::any_of(op->getOperandTypes(), llvm::IsaPred<StateType>)));
  });
  if (result.wasInterrupted())
    return std::nullopt;
  SmallVector<int64_t> sorted(slots.takeVector());
  llvm::sort(sorted);
  return sorted;
}

/// Those of all public functions with a state.
static DictionaryAttr getUses(ModuleOp module) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> uses;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal() ||
        !llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<StateType>))
      continue;
    if (std::optional<SmallVector<int64_t>> slots = getRecorded(function))
      uses.push_back(builder.getNamedAttr(
          function.getName(), builder.getDenseI64ArrayAttr(*slots)));
  }
  return builder.getDictionaryAttr(uses);
}

void BuildStateUpdatePass::runOnOperation() {
  ModuleOp module = getOperation();
  auto table = module->getAttrOfType<StateTableAttr>(kStateAttrName);
  if (!table || !table.getUpdate())
    return;
  // There already, unless the symbol was unused to somebody.
  SymbolTable symbols(module);
  auto update = module->getAttrOfType<FlatSymbolRefAttr>(kStateUpdateAttrName);
  if (update && symbols.lookup(update.getValue()))
    return;
  DictionaryAttr uses = getUses(module);
  auto b = ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody());
  auto function = func::FuncOp::create(
      b, "fp8_update_state",
      b.getFunctionType(StateType::get(&getContext()), {}));
  // Hosts call it as they call functions of the program.
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    b.getUnitAttr());
  function->setAttr(kStateUsesAttrName, uses);
  // A function of the program may have the name.
  symbols.insert(function);
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  UpdateStateOp::create(b, body->getArgument(0), table);
  func::ReturnOp::create(b);
  module->setAttr(kStateUpdateAttrName, FlatSymbolRefAttr::get(function));
}
