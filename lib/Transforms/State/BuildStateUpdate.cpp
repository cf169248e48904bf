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

#include "fp8/IR/FP8CollectiveOps.h"
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

/// The functions that have a state.
static SmallVector<func::FuncOp> getFunctions(ModuleOp module) {
  return llvm::filter_to_vector(
      module.getOps<func::FuncOp>(), [](func::FuncOp function) {
        return !function.isExternal() &&
               llvm::any_of(function.getArgumentTypes(),
                            llvm::IsaPred<StateType>);
      });
}

/// The slots that calls of them record.
static DictionaryAttr getUses(MLIRContext *context,
                              ArrayRef<func::FuncOp> functions) {
  Builder builder(context);
  SmallVector<NamedAttribute> uses;
  for (func::FuncOp function : functions)
    if (std::optional<SmallVector<int64_t>> slots = getRecorded(function))
      uses.push_back(builder.getNamedAttr(
          function.getName(), builder.getDenseI64ArrayAttr(*slots)));
  return builder.getDictionaryAttr(uses);
}

/// The group that shares the amaxes of a step, null without one: a step is of
/// all functions, also those that others call, and so is the group.
static FailureOr<StringAttr> getGroup(MutableArrayRef<func::FuncOp> functions) {
  StringAttr group;
  for (auto [index, function] : llvm::enumerate(functions)) {
    StringAttr other = getAmaxGroup(function);
    if (index == 0)
      group = other;
    if (other == group)
      continue;
    auto describe = [](StringAttr name) {
      return name ? "'" + name.str() + "'" : std::string("none");
    };
    return function.emitError("expected all functions with a scaling state to "
                              "have the same ")
           << kAmaxGroupAttrName << ", but got " << describe(other) << " of '"
           << function.getName() << "' and " << describe(group) << " of '"
           << functions.front().getName() << "'";
  }
  return group;
}

/// Has first calls take the scales of all ranks' tensors.
static void reduceFirstCalls(func::FuncOp function, StringAttr group) {
  Value state = *llvm::find_if(function.getArguments(), [](Value argument) {
    return isa<StateType>(argument.getType());
  });
  function.walk([&](func::ReturnOp op) {
    OpBuilder b(op);
    AllReduceStateOp::create(b, op.getLoc(), state, group,
                             /*first_call=*/true);
  });
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
  SmallVector<func::FuncOp> functions = getFunctions(module);
  FailureOr<StringAttr> group = getGroup(functions);
  if (failed(group))
    return signalPassFailure();
  // What hosts call.
  auto called = llvm::filter_to_vector(
      functions, [](func::FuncOp function) { return function.isPublic(); });
  DictionaryAttr uses = getUses(&getContext(), called);
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
  if (*group) {
    for (func::FuncOp each : called)
      reduceFirstCalls(each, *group);
    AllReduceStateOp::create(b, body->getArgument(0), *group,
                             /*first_call=*/false);
  }
  UpdateStateOp::create(b, body->getArgument(0), table);
  func::ReturnOp::create(b);
  module->setAttr(kStateUpdateAttrName, FlatSymbolRefAttr::get(function));
}
