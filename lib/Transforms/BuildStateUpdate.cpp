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
#include "mlir/IR/ImplicitLocOpBuilder.h"

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
  auto b = ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody());
  auto function = func::FuncOp::create(
      b, "fp8_update_state",
      b.getFunctionType(StateType::get(&getContext()), {}));
  // Hosts call it as they call functions of the program.
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    b.getUnitAttr());
  // A function of the program may have the name.
  symbols.insert(function);
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  UpdateStateOp::create(b, body->getArgument(0), table);
  func::ReturnOp::create(b);
  module->setAttr(kStateUpdateAttrName, FlatSymbolRefAttr::get(function));
}
