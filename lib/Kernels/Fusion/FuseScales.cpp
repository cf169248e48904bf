//===- FuseScales.cpp - Scales where their amaxes are measured ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scales of whole columns wait for all rows, so that no fusion has them when it
// is formed. What measures the columns in the end, of parts of them perhaps,
// may hold them, and has its amaxes in registers.

#include "../TargetLookup.h"
#include "FusionParts.h"
#include "FusionSpec.h"
#include "fp8/Kernels/Passes.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FUSESCALESPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct FuseScalesPass : fp8::impl::FuseScalesPassBase<FuseScalesPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;
  bool fuse(ComputeScaleOp op, const KernelTarget &target);
};
} // namespace

/// What `fusion` yields to others than `op`, and what `op` has for anybody.
static SmallVector<std::pair<Value, Value>>
getUsed(FusionOp fusion, ComputeScaleOp op, ComputeScaleOp copy) {
  SmallVector<std::pair<Value, Value>> used;
  for (auto [result, yielded] : llvm::zip_equal(
           fusion.getResults(), getTerminator(fusion)->getOperands()))
    if (llvm::any_of(result.getUsers(),
                     [&](Operation *user) { return user != op; }))
      used.emplace_back(result, yielded);
  for (auto [result, inside] :
       llvm::zip_equal(op->getResults(), copy->getResults()))
    if (!result.use_empty())
      used.emplace_back(result, inside);
  return used;
}

bool FuseScalesPass::fuse(ComputeScaleOp op, const KernelTarget &target) {
  auto fusion = op.getAmax().getDefiningOp<FusionOp>();
  if (!fusion || op.getTensorAmax() || op->use_empty() ||
      fusion->hasAttr(kConfigAttrName))
    return false;
  Operation *terminator = getTerminator(fusion);
  unsigned number = cast<OpResult>(op.getAmax()).getResultNumber();
  IRMapping mapping;
  mapping.map(op.getAmax(), terminator->getOperand(number));
  OpBuilder b(terminator);
  auto copy = cast<ComputeScaleOp>(b.clone(*op, mapping));
  auto used = getUsed(fusion, op, copy);
  FusionOp fused =
      extractFusion(fusion, llvm::to_vector(llvm::make_second_range(used)));
  std::string unused;
  FailureOr<FusionSpec> spec = FusionSpec::get(fused, unused);
  // Whole rows beside whole columns leave no registers for their scales.
  if (failed(spec) || spec->reducesRows || !hasKernel(*spec, target, unused)) {
    fused.erase();
    copy.erase();
    return false;
  }
  for (auto [pair, result] : llvm::zip_equal(used, fused.getResults()))
    pair.first.replaceAllUsesExcept(result, op);
  op.erase();
  eraseFusion(fusion);
  return true;
}

void FuseScalesPass::runOnOperation() {
  SmallVector<ComputeScaleOp> ops;
  getOperation().walk([&](ComputeScaleOp op) {
    if (!op->getParentOfType<FusionOp>())
      ops.push_back(op);
  });
  if (ops.empty())
    return markAllAnalysesPreserved();
  FailureOr<KernelTarget> target = lookupTarget(getOperation());
  if (failed(target))
    return signalPassFailure();
  for (ComputeScaleOp op : ops)
    if (fuse(op, *target))
      ++numFused;
}
