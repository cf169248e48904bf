//===- SelectKernels.cpp - Decide how each kernel is built ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetLookup.h"
#include "fp8/Analysis/FusionLayouts.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/FP8Types.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/TuningTable.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "fp8-select-kernels"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SELECTKERNELSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct SelectKernelsPass : fp8::impl::SelectKernelsPassBase<SelectKernelsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  void runOnOperation() override;
  FailureOr<TuningTable> loadTable(GPUTargetAttr target);
  LogicalResult select(KernelOpInterface op, const KernelTarget &target,
                       const TuningTable &tuned);
  /// What the table has for the op, if that fits; null otherwise.
  KernelConfigAttrInterface lookup(Operation *op, const KernelSpec &spec,
                                   const KernelGenerator &generator,
                                   GPUTargetAttr target,
                                   const TuningTable &tuned);
  void repeat(Operation *op, ArrayRef<KernelConfigAttrInterface> candidates);

  size_t numRepeated = 0;
};
} // namespace

/// Whether a kernel computes `op` with an operation around it.
static bool isPartOfKernel(Operation *op) {
  while ((op = op->getParentOp()))
    if (op->hasAttr(kConfigAttrName))
      return true;
  return false;
}

FailureOr<TuningTable> SelectKernelsPass::loadTable(GPUTargetAttr target) {
  TuningTable tuned(target.getChip());
  Location loc = getOperation().getLoc();
  if (!table.empty() && failed(tuned.load(table, &getContext(), loc)))
    return failure();
  return tuned;
}

KernelConfigAttrInterface
SelectKernelsPass::lookup(Operation *op, const KernelSpec &spec,
                          const KernelGenerator &generator,
                          GPUTargetAttr target, const TuningTable &tuned) {
  const TuningTable::Entry *entry = tuned.lookup(spec);
  if (!entry)
    return {};
  std::string reason;
  if (failed(generator.checkFit(spec, entry->config, target, reason))) {
    op->emitRemark() << "tuning table '" << table
                     << "': its config is ignored: " << reason;
    return {};
  }
  ++numTuned;
  return entry->config;
}

/// The first candidate goes to the op itself, whose results are used. A sample
/// begins with another one for each op, so that ops that share their candidates
/// do not share what is left out.
void SelectKernelsPass::repeat(Operation *op,
                               ArrayRef<KernelConfigAttrInterface> candidates) {
  OpBuilder builder(op);
  size_t stride = std::max(1u, sample.getValue());
  size_t first = candidates.empty() ? 0 : numRepeated++ % candidates.size();
  for (size_t i = first % stride; i < candidates.size(); i += stride) {
    KernelConfigAttrInterface config = candidates[i];
    Operation *target = op;
    if (op->hasAttr(kConfigAttrName))
      target = builder.clone(*op);
    target->setAttr(kConfigAttrName, config);
    ++numSelected;
  }
}

/// Kernels count elements of a dimension in 32 bits with a sign. Extents that
/// show at run time are checked by the runtime.
static LogicalResult checkExtents(Operation *op, std::string &reason) {
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  for (Type type : types) {
    ArrayRef<int64_t> shape;
    if (auto shaped = dyn_cast<ShapedType>(type); shaped && shaped.hasRank())
      shape = shaped.getShape();
    else if (auto scaled = dyn_cast<ScaledType>(type))
      shape = scaled.getShape();
    for (int64_t extent : shape) {
      if (ShapedType::isDynamic(extent) || llvm::isInt<32>(extent))
        continue;
      reason = ("expected extents below 2^31, but got " + Twine(extent)).str();
      return failure();
    }
  }
  return success();
}

LogicalResult SelectKernelsPass::select(KernelOpInterface op,
                                        const KernelTarget &target,
                                        const TuningTable &tuned) {
  std::string reason;
  FailureOr<std::unique_ptr<KernelSpec>> spec = failure();
  if (succeeded(checkExtents(op, reason)))
    spec = op.getKernelSpec(reason);
  const KernelGenerator *generator =
      succeeded(spec) ? target.architecture->getGenerator(**spec, reason)
                      : nullptr;
  auto pinned = op->getAttrOfType<KernelConfigAttrInterface>(kConfigAttrName);
  if (pinned) {
    if (!generator ||
        failed(generator->checkFit(**spec, pinned, target.attribute, reason)))
      return op->emitOpError() << reason;
    return success();
  }
  FailureOr<KernelConfigAttrInterface> config = failure();
  if (generator && everyCandidate) {
    repeat(op, generator->getCandidates(**spec, target.attribute));
    return success();
  }
  if (generator) {
    config = lookup(op, **spec, *generator, target.attribute, tuned);
    if (!*config)
      config = generator->select(**spec, target.attribute, reason);
  }
  if (failed(config)) {
    LDBG() << "no kernel, for " << reason << ": "
           << OpWithFlags(op, OpPrintingFlags().skipRegions());
    op->emitRemark() << "no kernel: " << reason;
    return success();
  }
  LDBG() << TuningTable::describe(**spec) << ": " << *config;
  op->setAttr(kConfigAttrName, *config);
  std::string remark = generator->getRemark(**spec, *config, target.attribute);
  if (!remark.empty())
    op->emitRemark() << remark;
  remark = generator->describeInvariance(**spec, *config, target.attribute);
  if (!remark.empty())
    op->emitRemark() << "invariant: " << remark;
  ++numSelected;
  return success();
}

/// Casts with a seed and rotations have kernels in fusions; outside of them
/// nothing else says why they have none.
static void remarkLoops(ModuleOp module) {
  module.walk<WalkOrder::PreOrder>([](Operation *op) {
    if (isa<FusionOp>(op))
      return WalkResult::skip();
    if (!isPositionDependent(op))
      return WalkResult::advance();
    FusionLayouts layouts(FusionLayouts::getOwnDomain(op));
    size_t rank = layouts.getDomain().size();
    std::string reason;
    if (rank == 0 || rank > 3)
      reason = llvm::formatv("expected a domain of one to three dimensions, "
                             "but got {0}",
                             rank);
    else if (succeeded(layouts.add(op, reason)))
      reason = "expected a fp8.fusion around it";
    op->emitRemark() << "no kernel: " << reason;
    return WalkResult::advance();
  });
}

void SelectKernelsPass::runOnOperation() {
  remarkLoops(getOperation());
  SmallVector<KernelOpInterface> ops;
  getOperation().walk<WalkOrder::PreOrder>(
      [&](KernelOpInterface op) { ops.push_back(op); });
  if (ops.empty() && table.empty())
    return markAllAnalysesPreserved();
  FailureOr<KernelTarget> target = lookupTarget(getOperation());
  if (failed(target))
    return signalPassFailure();
  FailureOr<TuningTable> tuned = loadTable(target->attribute);
  if (failed(tuned))
    return signalPassFailure();
  numRepeated = 0;
  // What surrounds others comes first, and is computed with them.
  for (KernelOpInterface op : ops)
    if (!isPartOfKernel(op) && failed(select(op, *target, *tuned)))
      return signalPassFailure();
}
