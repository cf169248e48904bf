//===- CheckGPUSupport.cpp - What cannot run on a GPU yet -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Types.h"
#include "fp8/Transforms/Passes.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CHECKGPUSUPPORTPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct CheckGPUSupport : fp8::impl::CheckGPUSupportPassBase<CheckGPUSupport> {
  using Base::Base;
  void runOnOperation() override {
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      if (llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<StateType>)) {
        function.emitOpError(
            "expected no scaling state, which GPUs do not hold yet: give it to "
            "the program as tensors (functional-state), or choose a recipe "
            "without state");
        return signalPassFailure();
      }
  }
};
} // namespace
