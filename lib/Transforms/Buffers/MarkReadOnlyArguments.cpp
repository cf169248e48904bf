//===- MarkReadOnlyArguments.cpp - What callers pass stays as it is -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_MARKREADONLYARGUMENTSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using bufferization::BufferizationDialect;

namespace {
struct MarkReadOnlyArgumentsPass
    : fp8::impl::MarkReadOnlyArgumentsPassBase<MarkReadOnlyArgumentsPass> {
  using Base::Base;
  void runOnOperation() override {
    StringRef name = BufferizationDialect::kWritableAttrName;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.isPublic() || function.isExternal())
        continue;
      // Attributes of one argument are a list of all: once for each function.
      // Bufferization takes its own away one by one, and nothing can write to
      // what nobody uses.
      SmallVector<DictionaryAttr> attributes;
      for (BlockArgument argument : function.getArguments()) {
        NamedAttrList list(function.getArgAttrDict(argument.getArgNumber()));
        if (isa<TensorType>(argument.getType()) && !argument.use_empty() &&
            !list.get(name))
          list.set(name, BoolAttr::get(&getContext(), false));
        attributes.push_back(list.getDictionary(&getContext()));
      }
      function.setAllArgAttrs(attributes);
    }
  }
};
} // namespace
