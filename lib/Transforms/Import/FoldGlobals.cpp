//===- FoldGlobals.cpp - Loads of constant globals to constants -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-fold-globals"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FOLDGLOBALSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {
struct FoldGlobalsPass : fp8::impl::FoldGlobalsPassBase<FoldGlobalsPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// The value that every load of `global` sees; null if it has none or may
/// change.
static ElementsAttr getConstantValue(ml_program::GlobalOp global) {
  if (!global || global.getIsMutable())
    return {};
  return dyn_cast_if_present<ElementsAttr>(global.getValueAttr());
}

void FoldGlobalsPass::runOnOperation() {
  SymbolTableCollection symbols;
  SmallVector<std::tuple<Operation *, ElementsAttr, StringAttr>> loads;
  SetVector<Operation *> globals;
  WalkResult result = getOperation().walk([&](Operation *op) {
    SymbolRefAttr name;
    if (auto load = dyn_cast<ml_program::GlobalLoadConstOp>(op))
      name = load.getGlobalAttr();
    else if (auto load = dyn_cast<ml_program::GlobalLoadOp>(op))
      name = load.getGlobalAttr();
    else
      return WalkResult::advance();
    auto global =
        symbols.lookupNearestSymbolFrom<ml_program::GlobalOp>(op, name);
    ElementsAttr value = getConstantValue(global);
    if (value && value.getType() == op->getResult(0).getType()) {
      loads.emplace_back(op, value, name.getLeafReference());
      globals.insert(global);
      return WalkResult::advance();
    }
    // A mutable global is upstream's to bufferize; a constant one without a
    // value has to come from somewhere.
    if (!isa<ml_program::GlobalLoadConstOp>(op)) {
      LDBG() << "not folded, for it may change or has no value: " << *op;
      return WalkResult::advance();
    }
    op->emitOpError("expected the global ")
        << name << " to be constant and to have a value of type "
        << op->getResult(0).getType();
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return signalPassFailure();

  IRRewriter rewriter(&getContext());
  for (auto [op, value, name] : loads) {
    rewriter.setInsertionPoint(op);
    // The global may go, but its name is the weight's.
    auto constant = arith::ConstantOp::create(
        rewriter, NameLoc::get(name, op->getLoc()), cast<TypedAttr>(value));
    rewriter.replaceOp(op, constant);
    ++numFolded;
  }
  // Nobody else can ask for these: a weight that is only needed in 8 bits has
  // to leave the program.
  for (Operation *global : globals)
    if (SymbolTable::getSymbolVisibility(global) ==
            SymbolTable::Visibility::Private &&
        SymbolTable::symbolKnownUseEmpty(global, getOperation()))
      global->erase();
}
