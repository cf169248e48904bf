//===- ConvertFunctions.cpp - Functions of many arguments to LLVM ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/Passes.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTFUNCTIONSPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct ConvertFunctionsPass
    : fp8::impl::ConvertFunctionsPassBase<ConvertFunctionsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    createConvertFuncToLLVMPass()->getDependentDialects(registry);
  }
  void runOnOperation() override;
};
} // namespace

void ConvertFunctionsPass::runOnOperation() {
  SmallVector<cf::BranchOp> branches;
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    Block &entry = function.getBody().front();
    Block *rest = entry.splitBlock(entry.begin());
    auto b = OpBuilder::atBlockEnd(&entry);
    branches.push_back(cf::BranchOp::create(b, function.getLoc(), rest));
  }
  OpPassManager pipeline(ModuleOp::getOperationName());
  pipeline.addPass(createConvertFuncToLLVMPass());
  if (failed(runPipeline(pipeline, getOperation())))
    return signalPassFailure();
  IRRewriter rewriter(&getContext());
  for (cf::BranchOp branch : branches) {
    Block *rest = branch.getDest();
    Block *entry = branch->getBlock();
    rewriter.eraseOp(branch);
    rewriter.mergeBlocks(rest, entry);
  }
}
