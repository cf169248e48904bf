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
#include "fp8/Kernels/TuningTable.h"

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
  LogicalResult loadTable();
  LogicalResult select(MatmulOp op);
  /// What the table has for the op, if that fits; null otherwise.
  GemmConfigAttr lookup(MatmulOp op, const MatmulSpec &spec);
  void repeat(MatmulOp op, ArrayRef<GemmConfigAttr> candidates);

  TuningTable tuned;
};
} // namespace

LogicalResult SelectKernelsPass::loadTable() {
  tuned = TuningTable();
  if (table.empty())
    return success();
  Location loc = getOperation().getLoc();
  FailureOr<TuningTable> loaded = TuningTable::load(
      table, &getContext(), [&] { return emitError(loc); },
      [&] { return emitRemark(loc); });
  if (failed(loaded))
    return failure();
  tuned = std::move(*loaded);
  return success();
}

GemmConfigAttr SelectKernelsPass::lookup(MatmulOp op, const MatmulSpec &spec) {
  const TuningTable::Entry *entry = tuned.lookup(spec);
  if (!entry)
    return {};
  std::string reason;
  if (failed(MatmulLayout::get(spec, entry->config, reason))) {
    op.emitRemark() << "tuning table '" << table
                    << "': its config is ignored: " << reason;
    return {};
  }
  ++numTuned;
  return entry->config;
}

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
  if (GemmConfigAttr found =
          succeeded(spec) ? lookup(op, *spec) : GemmConfigAttr())
    config = found;
  else if (succeeded(spec))
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
  if (failed(loadTable()))
    return signalPassFailure();
  SmallVector<MatmulOp> matmuls;
  getOperation().walk([&](MatmulOp op) { matmuls.push_back(op); });
  for (MatmulOp op : matmuls)
    if (failed(select(op)))
      return signalPassFailure();
}
