//===- MarkInvariant.cpp - Ask for rows that depend on nothing else -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_MARKINVARIANTPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct MarkInvariantPass : fp8::impl::MarkInvariantPassBase<MarkInvariantPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->setAttr(kInvariantAttrName, UnitAttr::get(&getContext()));
  }
};
} // namespace
