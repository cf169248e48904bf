//===- SelectKernels.cpp - Decide how each matmul's kernel is built -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/Heuristics.h"
#include "fp8/Kernels/MatmulKernel.h"
#include "fp8/Kernels/Passes.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SELECTKERNELSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct SelectKernelsPass : fp8::impl::SelectKernelsPassBase<SelectKernelsPass> {
  using Base::Base;

  void runOnOperation() override;
  LogicalResult select(MatmulOp op);
};
} // namespace

LogicalResult SelectKernelsPass::select(MatmulOp op) {
  std::string reason;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, reason);
  auto pinned = op->getAttrOfType<GemmConfigAttr>(kGemmConfigAttrName);
  if (pinned) {
    if (failed(spec) || failed(MatmulLayout::get(*spec, pinned, reason)))
      return op.emitOpError() << reason;
    return success();
  }
  FailureOr<GemmConfigAttr> config = failure();
  if (succeeded(spec))
    config = selectMatmulConfigSM90(&getContext(), *spec, reason);
  if (failed(config)) {
    op.emitRemark() << "no kernel: " << reason;
    return success();
  }
  op->setAttr(kGemmConfigAttrName, *config);
  ++numSelected;
  return success();
}

void SelectKernelsPass::runOnOperation() {
  WalkResult result = getOperation().walk([&](MatmulOp op) {
    return failed(select(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}
