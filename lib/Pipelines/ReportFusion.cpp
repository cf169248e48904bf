//===- ReportFusion.cpp - Write what each kernel moves --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report/FunctionReporter.h"
#include "Report/PeakMemory.h"
#include "TargetPipelines.h"
#include "fp8/Pipelines/Passes.h"
#include "fp8/Support/OutputFile.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/ScopeExit.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_REPORTFUSIONPASS
#include "fp8/Pipelines/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// What the functions of a program become, by their names.
struct LoweredProgram {
  llvm::StringMap<SmallVector<LaunchedKernel>> launched;
  llvm::StringMap<std::optional<double>> peakMemory;
};

struct ReportFusionPass : fp8::impl::ReportFusionPassBase<ReportFusionPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
    OpPassManager lowering(ModuleOp::getOperationName());
    buildGPULaunchPipeline(lowering);
    lowering.getDependentDialects(registry);
  }

  void runOnOperation() override;
  /// Lowers a copy of the program. A node's tag is its number, and those of the
  /// graphs before.
  FailureOr<LoweredProgram> lower(ArrayRef<KernelGraph> graphs);
};
} // namespace

FailureOr<LoweredProgram>
ReportFusionPass::lower(ArrayRef<KernelGraph> graphs) {
  // A pass may run others on what lies inside of its operation only.
  ModuleOp module = getOperation();
  IRMapping mapping;
  auto copy = cast<ModuleOp>(module->clone(mapping));
  unsigned tag = 0;
  for (const KernelGraph &graph : graphs)
    for (const KernelNode &node : graph.getNodes())
      tagOrigin(mapping.lookup(node.op), tag++);
  module.getBody()->push_back(copy);
  llvm::scope_exit erase([&] { copy.erase(); });

  OpPassManager lowering(ModuleOp::getOperationName());
  buildGPULaunchPipeline(lowering);
  {
    // Remarks come when the program itself is lowered.
    ScopedDiagnosticHandler handler(&getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark);
    });
    if (failed(runPipeline(lowering, copy)))
      return failure();
  }
  LoweredProgram lowered{{}, getPeakMemory(copy)};
  for (auto function : copy.getOps<FunctionOpInterface>())
    if (!function.isExternal())
      lowered.launched[function.getName()] = getLaunchedKernels(function);
  return lowered;
}

void ReportFusionPass::runOnOperation() {
  markAllAnalysesPreserved();
  ModuleOp module = getOperation();
  auto target = module->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  const Architecture *architecture =
      target ? lookupArchitecture(target.getChip()) : nullptr;
  if (!architecture) {
    emitError(module.getLoc(), "expected a module with the attribute '")
        << kTargetAttrName << "' of a chip that kernels are built for";
    return signalPassFailure();
  }
  std::vector<KernelGraph> graphs;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (!function.isExternal())
      graphs.emplace_back(function);
  FailureOr<LoweredProgram> lowered = lower(graphs);
  if (failed(lowered))
    return signalPassFailure();

  FusionReport report;
  report.chip = target.getChip();
  report.memoryPeak = target.getMemoryPeak();
  report.peak = 2e-6 * target.getMultiprocessors() * target.getMmaRate() *
                target.getClock();
  report.launchTime = target.getLaunchTime() * 1e-3;
  unsigned firstTag = 0;
  for (const KernelGraph &graph : graphs) {
    StringRef name = graph.getFunction().getName();
    ArrayRef<LaunchedKernel> kernels = lowered->launched[name];
    FusionReasons reasons(graph, *architecture, target, numTried);
    FunctionReporter reporter(graph, kernels, firstTag, reasons, target);
    if (!kernels.empty()) {
      report.functions.push_back(reporter.report());
      report.functions.back().peakMemory = lowered->peakMemory.lookup(name);
    }
    numLaunches += kernels.size();
    firstTag += graph.getNodes().size();
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (StringRef(file).ends_with(".json"))
    report.printJSON(os);
  else
    report.printText(os);
  if (llvm::Error error = writeOutputFile(file, text)) {
    emitError(module.getLoc(), "fusion report ")
        << llvm::toString(std::move(error));
    signalPassFailure();
  }
}
