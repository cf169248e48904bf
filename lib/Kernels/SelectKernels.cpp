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
  void repeat(MatmulOp op, ArrayRef<GemmConfigAttr> candidates);
};
} // namespace

/// The first candidate goes to the op itself, whose results are used.
void SelectKernelsPass::repeat(MatmulOp op,
                               ArrayRef<GemmConfigAttr> candidates) {
  OpBuilder builder(op);
  for (GemmConfigAttr config : candidates) {
    Operation *target = op;
    if (op->hasAttr(kGemmConfigAttrName))
      target = builder.clone(*op);
    target->setAttr(kGemmConfigAttrName, config);
    ++numSelected;
  }
}

LogicalResult SelectKernelsPass::select(MatmulOp op) {
  std::string reason;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, reason);
  auto pinned = op->getAttrOfType<GemmConfigAttr>(kGemmConfigAttrName);
  if (pinned) {
    if (failed(spec) || failed(MatmulLayout::get(*spec, pinned, reason)))
      return op.emitOpError() << reason;
    return success();
  }
  if (everyCandidate && succeeded(spec)) {
    repeat(op, getMatmulCandidatesSM90(&getContext(), *spec));
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
  SmallVector<MatmulOp> matmuls;
  getOperation().walk([&](MatmulOp op) { matmuls.push_back(op); });
  for (MatmulOp op : matmuls)
    if (failed(select(op)))
      return signalPassFailure();
}
