//===- SelectAccumulation.cpp - How a GPU's kernels would add up products -===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetPipelines.h"
#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/Matmul/MatmulAccumulation.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Pipelines/Passes.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/ScopeExit.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SELECTACCUMULATIONPASS
#include "fp8/Pipelines/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Stands in front of the number in the name of a location.
static constexpr StringLiteral kTagPrefix = "fp8-select-accumulation:";

namespace {
struct SelectAccumulationPass
    : fp8::impl::SelectAccumulationPassBase<SelectAccumulationPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
    OpPassManager selection(ModuleOp::getOperationName());
    buildSelection(selection);
    selection.getDependentDialects(registry);
  }

  void runOnOperation() override;

private:
  /// What decides on kernels, from the end of phase `fusion` on, whose last
  /// passes are a GPU's.
  void buildSelection(OpPassManager &pm) const;
};
} // namespace

void SelectAccumulationPass::buildSelection(OpPassManager &pm) const {
  PipelineOptions options;
  options.target = chip;
  options.kernelTable = table;
  options.machine = machine;
  addFuncPass(pm, createFuseCastsPass());
  FormFusionsPassOptions fusions;
  fusions.positionDependent = true;
  addFuncPass(pm, createFormFusionsPass(fusions));
  buildGPUSelectionPipeline(pm, options);
  pm.addPass(createGroupMatmulsPass());
}

/// The matmuls that one became part of.
static SmallVector<unsigned> getTags(Location loc) {
  SmallVector<unsigned> tags;
  loc->walk([&](Location inner) {
    auto name = dyn_cast<NameLoc>(inner);
    StringRef text = name ? name.getName().getValue() : StringRef();
    unsigned tag;
    if (text.consume_front(kTagPrefix) && llvm::to_integer(text, tag))
      tags.push_back(tag);
    return WalkResult::advance();
  });
  return tags;
}

void SelectAccumulationPass::runOnOperation() {
  ModuleOp module = getOperation();
  SmallVector<Operation *> matmuls;
  module.walk([&](Operation *op) {
    if (isa<MatmulOp, GroupedMatmulOp>(op))
      matmuls.push_back(op);
  });
  if (matmuls.empty())
    return markAllAnalysesPreserved();

  // A pass may run others on what lies inside of its operation only. Passes
  // keep locations, but not attributes that they do not know.
  IRMapping mapping;
  auto copy = cast<ModuleOp>(module->clone(mapping));
  for (auto [tag, op] : llvm::enumerate(matmuls)) {
    Operation *copied = mapping.lookup(op);
    auto name = StringAttr::get(&getContext(), kTagPrefix + Twine(tag));
    copied->setLoc(NameLoc::get(name, copied->getLoc()));
  }
  module.getBody()->push_back(copy);
  llvm::scope_exit erase([&] { copy.erase(); });
  OpPassManager selection(ModuleOp::getOperationName());
  buildSelection(selection);
  {
    // What is remarked on a GPU's kernels is of no use here.
    ScopedDiagnosticHandler handler(&getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    if (failed(runPipeline(selection, copy)))
      return signalPassFailure();
  }
  // What a config says for a CPU is said by then: products that differ in other
  // decisions are the same.
  for (Operation *op : matmuls)
    op->removeAttr(kConfigAttrName);
  copy.walk([&](Operation *op) {
    std::optional<TensorCoreAccumulation> sums = getAccumulationOfKernel(op);
    if (!sums)
      return;
    for (unsigned tag : getTags(op->getLoc())) {
      sums->set(matmuls[tag]);
      ++numSelected;
    }
  });
}
