//===- CheckArguments.cpp - Arguments are memory of the device ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"

#include "fp8/Conversion/Passes.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/ValueNames.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CHECKARGUMENTSPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static void checkMemRef(RuntimeCalls &b, RuntimeTexts &texts,
                        TypedValue<MemRefType> memref, const Twine &name) {
  Value count = arith::ConstantIndexOp::create(b, 1);
  for (int64_t dim = 0; dim < memref.getType().getRank(); ++dim)
    count = b.createOrFold<arith::MulIOp>(
        count, b.createOrFold<memref::DimOp>(memref, dim));
  Value index = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  auto toI64 = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, b.getI64Type(), value);
  };
  Value address = LLVM::IntToPtrOp::create(b, b.getPtrType(), toI64(index));
  b.call(runtime::fp8rt_context_check_memory, address, toI64(count),
         b.text(texts, name));
}

/// The amaxes stand for all rows.
static void checkState(RuntimeCalls &b, RuntimeTexts &texts, Value state) {
  using Rows = runtime::Struct<fp8rt_state_rows>;
  Value numSlots = loadField(b, state, Rows::num_slots);
  Value amax = loadField(b, state, Rows::amax);
  b.call(runtime::fp8rt_context_check_memory, amax, numSlots,
         b.text(texts, "the rows of the state"));
}

namespace {
struct CheckArgumentsPass
    : fp8::impl::CheckArgumentsPassBase<CheckArgumentsPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void CheckArgumentsPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(verifyRuntimeSymbols(module)))
    return signalPassFailure();
  bool hasState = module->hasAttr(kStateAttrName) ||
                  module->hasAttr(kStateManifestAttrName);
  RuntimeTexts texts(module);
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || !function.isPublic())
      continue;
    Operation *first = &function.getBody().front().front();
    OpBuilder builder(first);
    RuntimeCalls b(builder, first);
    // The last is the context.
    for (BlockArgument argument : function.getArguments().drop_back()) {
      auto memref = dyn_cast<TypedValue<MemRefType>>(argument);
      // What nothing is done with may lie anywhere.
      if (memref && !memref.use_empty())
        checkMemRef(
            b, texts, memref,
            "argument '" +
                fp8::getArgumentName(function, argument.getArgNumber()) +
                "' of '" + function.getName() + "'");
      if (hasState && isa<LLVM::LLVMPointerType>(argument.getType()))
        checkState(b, texts, argument);
    }
  }
}
