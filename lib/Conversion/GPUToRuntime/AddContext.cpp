//===- AddContext.cpp - Functions take the context of the runtime ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_ADDCONTEXTPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct AddContextPass : fp8::impl::AddContextPassBase<AddContextPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void AddContextPass::runOnOperation() {
  auto type = LLVM::LLVMPointerType::get(&getContext());
  SymbolTable symbols(getOperation());
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (!function.isExternal() &&
        failed(function.insertArgument(function.getNumArguments(), type,
                                       DictionaryAttr(), function.getLoc())))
      return signalPassFailure();
  // Kernels call functions of their own modules, which have no context.
  for (auto function : getOperation().getOps<func::FuncOp>())
    function.walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (callee && !callee.isExternal())
        call.getOperandsMutable().append(function.getArguments().back());
    });
}
