//===- StripAttributes.cpp - Attributes that LLVM has no use for ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/StateManifest.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_STRIPATTRIBUTESPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

/// The attributes of `attributes` that LLVM's translation knows.
static DictionaryAttr keepLLVM(MLIRContext *context,
                               DictionaryAttr attributes) {
  SmallVector<NamedAttribute> kept;
  if (attributes)
    for (NamedAttribute attribute : attributes)
      if (StringRef name = attribute.getName();
          name.starts_with("llvm.") || name == "passthrough")
        kept.push_back(attribute);
  return DictionaryAttr::get(context, kept);
}

/// What the function that ends a step says of the others; null for nothing.
static DictionaryAttr getUses(ModuleOp module) {
  auto symbol =
      module->getAttrOfType<FlatSymbolRefAttr>(fp8::kStateUpdateAttrName);
  auto update =
      symbol ? module.lookupSymbol<func::FuncOp>(symbol) : func::FuncOp();
  return update ? update->getAttrOfType<DictionaryAttr>(fp8::kStateUsesAttrName)
                : DictionaryAttr();
}

namespace {
struct StripAttributesPass
    : fp8::impl::StripAttributesPassBase<StripAttributesPass> {
  using Base::Base;
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    ModuleOp module = getOperation();
    if (auto table =
            module->getAttrOfType<fp8::StateTableAttr>(fp8::kStateAttrName)) {
      if (!table.getUpdate()) {
        emitError(module.getLoc(), "expected the recipe of '")
            << fp8::kStateAttrName << "' to learn from steps, but got "
            << table.getRecipe() << ": run fp8-bind-scales first";
        return signalPassFailure();
      }
      module->removeAttr(fp8::kStateAttrName);
      std::string manifest = fp8::getStateManifest(table, getUses(module));
      module->setAttr(fp8::kStateManifestAttrName,
                      StringAttr::get(context, manifest));
    }
    module->removeAttr(fp8::kRecipeAttrName);
    getOperation().walk([&](func::FuncOp function) {
      function->setDiscardableAttrs(
          keepLLVM(context, function->getDiscardableAttrDictionary()));
      // Attributes of one argument are a list of all: once for each function.
      SmallVector<DictionaryAttr> arguments, results;
      for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
        arguments.push_back(keepLLVM(context, function.getArgAttrDict(i)));
      for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
        results.push_back(keepLLVM(context, function.getResultAttrDict(i)));
      function.setAllArgAttrs(arguments);
      function.setAllResultAttrs(results);
    });
    // Upstream's widening of math puts a flag on casts, for which LLVM's casts
    // have no place: it would stay as an attribute of another dialect.
    getOperation().walk([](Operation *op) {
      if (auto cast = dyn_cast<arith::ExtFOp>(op))
        cast.removeFastmathAttr();
      else if (auto cast = dyn_cast<arith::TruncFOp>(op))
        cast.removeFastmathAttr();
    });
  }
};
} // namespace
