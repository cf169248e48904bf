//===- InlineKernelCalls.cpp - Kernels without calls ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_INLINEKERNELCALLSPASS
#include "fp8/GPU/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

/// A function that calls itself has more.
static constexpr size_t kMaxCalls = 4096;

namespace {
struct InlineKernelCallsPass
    : fp8::impl::InlineKernelCallsPassBase<InlineKernelCallsPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// By hand, since upstream's inliner asks the region around, and that of a
/// launch takes nothing.
static LogicalResult inlineOne(func::CallOp call,
                               SymbolTableCollection &symbols) {
  auto callee =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee || callee.isExternal() || !callee.getBody().hasOneBlock())
    return call.emitOpError("expected a function of one block in a kernel, but "
                            "got '")
           << call.getCallee() << "'";
  OpBuilder builder(call);
  IRMapping mapping;
  mapping.map(callee.getArguments(), call.getOperands());
  Block &body = callee.getBody().front();
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  for (auto [result, returned] :
       llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(returned));
  call.erase();
  return success();
}

void InlineKernelCallsPass::runOnOperation() {
  SymbolTableCollection symbols;
  for (size_t count = 0;;) {
    SmallVector<func::CallOp> calls;
    getOperation()->walk([&](gpu::LaunchOp launch) {
      launch.walk([&](func::CallOp call) { calls.push_back(call); });
    });
    if (calls.empty())
      return;
    count += calls.size();
    if (count > kMaxCalls) {
      calls.front().emitOpError("expected a function in a kernel not to call "
                                "itself, but '")
          << calls.front().getCallee() << "' does";
      return signalPassFailure();
    }
    for (func::CallOp call : calls) {
      if (failed(inlineOne(call, symbols)))
        return signalPassFailure();
      ++numInlined;
    }
  }
}
