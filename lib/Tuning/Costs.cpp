//===- Costs.cpp - What the compiler expects of kernels -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Tuning/Costs.h"

#include "TunedKernel.h"
#include "fp8/Kernels/TuningTable.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Threading.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LineIterator.h"

using namespace mlir;
using namespace mlir::fp8;

/// What is pinned, or else what selection chooses among.
static SmallVector<KernelConfigAttrInterface>
getConfigs(const TunedKernel &kernel) {
  if (auto pinned =
          kernel.op->getAttrOfType<KernelConfigAttrInterface>(kConfigAttrName))
    return {pinned};
  return kernel.generator->getCandidates(*kernel.spec, kernel.target);
}

static void printKernel(llvm::json::OStream &json, const TunedKernel &kernel) {
  auto function = kernel.op->getParentOfType<FunctionOpInterface>();
  json.attribute("function", function ? function.getName() : "");
  json.attribute("kernel", TuningTable::describe(*kernel.spec));
  json.attributeArray("costs", [&] {
    for (KernelConfigAttrInterface config : getConfigs(kernel)) {
      std::string reason;
      if (failed(kernel.generator->checkFit(*kernel.spec, config, kernel.target,
                                            reason))) {
        kernel.op->emitRemark() << "no costs: " << reason;
        continue;
      }
      std::string text;
      llvm::raw_string_ostream(text) << config;
      json.object([&] {
        json.attribute("config", text);
        json.attribute("clocks", kernel.generator->getCost(*kernel.spec, config,
                                                           kernel.target));
      });
    }
  });
}

/// Those of a module with a target whose costs are known, in order.
static std::vector<std::unique_ptr<TunedKernel>> getKernels(ModuleOp module) {
  auto target = module->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  const Architecture *architecture = lookupArchitecture(target.getChip());
  std::vector<std::unique_ptr<TunedKernel>> kernels;
  module.walk([&](KernelOpInterface op) {
    std::string reason;
    FailureOr<std::unique_ptr<KernelSpec>> spec = op.getKernelSpec(reason);
    const KernelGenerator *generator =
        succeeded(spec) ? architecture->getGenerator(**spec, reason) : nullptr;
    if (generator && !(*spec)->hasKnownExtents())
      reason = "not all of its extents are known";
    if (!generator || !(*spec)->hasKnownExtents()) {
      op->emitRemark() << "no costs: " << reason;
      return;
    }
    kernels.push_back(std::make_unique<TunedKernel>(
        TunedKernel{op, std::move(*spec), generator, target}));
  });
  return kernels;
}

void fp8::printCosts(ModuleOp module, raw_ostream &os) {
  llvm::json::OStream json(os);
  json.array([&] {
    for (const std::unique_ptr<TunedKernel> &kernel : getKernels(module))
      json.object([&] { printKernel(json, *kernel); });
  });
  os << "\n";
}

//===----------------------------------------------------------------------===//
// CostTable
//===----------------------------------------------------------------------===//

CostTable::CostTable() = default;
CostTable::CostTable(CostTable &&) = default;
CostTable::~CostTable() = default;

/// By the functions that they are in; null for one of several.
static llvm::StringMap<const TunedKernel *>
getByFunction(ArrayRef<std::unique_ptr<TunedKernel>> kernels) {
  llvm::StringMap<const TunedKernel *> byFunction;
  for (const std::unique_ptr<TunedKernel> &kernel : kernels)
    if (auto function = kernel->op->getParentOfType<FunctionOpInterface>()) {
      auto [entry, isFirst] =
          byFunction.try_emplace(function.getName(), kernel.get());
      if (!isFirst)
        entry->second = nullptr;
    }
  return byFunction;
}

/// A config that each generator takes, for others may come from a file. That it
/// fits the operation does not matter: fits have times of kernels of the past.
static llvm::DenseMap<const KernelGenerator *, Attribute>
getUsualConfigs(ArrayRef<std::unique_ptr<TunedKernel>> kernels) {
  llvm::DenseMap<const KernelGenerator *, Attribute> usuals;
  for (const std::unique_ptr<TunedKernel> &kernel : kernels) {
    Attribute &usual = usuals[kernel->generator];
    std::string unused;
    if (usual)
      continue;
    if (FailureOr<KernelConfigAttrInterface> config =
            kernel->generator->select(*kernel->spec, kernel->target, unused);
        succeeded(config))
      usual = *config;
  }
  return usuals;
}

FailureOr<CostTable> CostTable::get(ModuleOp module,
                                    const llvm::MemoryBuffer &text,
                                    StringRef name) {
  MLIRContext *context = module.getContext();
  CostTable table;
  table.kernels = getKernels(module);
  auto byFunction = getByFunction(table.kernels);
  llvm::DenseMap<const KernelGenerator *, Attribute> usuals =
      getUsualConfigs(table.kernels);
  // Most are those of many operations.
  llvm::StringMap<KernelConfigAttrInterface> configs;
  for (llvm::line_iterator line(text); !line.is_at_end(); ++line) {
    auto fail = [&]() -> InFlightDiagnostic {
      return emitError(
          FileLineColLoc::get(context, name, line.line_number(), 1));
    };
    auto [function, configText] = line->split(' ');
    const TunedKernel *kernel = byFunction.lookup(function);
    if (!kernel)
      return fail() << "expected the name of a function that has one operation "
                       "with a kernel, but got '"
                    << function << "'";
    auto [entry, isNew] = configs.try_emplace(configText);
    if (isNew)
      entry->second = dyn_cast_or_null<KernelConfigAttrInterface>(
          parseAttribute(configText, context));
    if (!entry->second)
      return fail() << "expected a config, but got '" << configText << "'";
    if (Attribute usual = usuals.lookup(kernel->generator);
        !usual || usual.getTypeID() != entry->second.getTypeID()) {
      InFlightDiagnostic error = fail() << "expected a ";
      if (usual)
        error << "#" << usual.getAbstractAttribute().getName();
      else
        error << "function that has a kernel";
      return error << ", but got '" << *line << "'";
    }
    table.rows.push_back({kernel, entry->second});
  }
  return table;
}

std::vector<double> CostTable::getClocks(GPUTargetAttr target) const {
  std::vector<double> clocks(rows.size());
  parallelFor(target.getContext(), 0, rows.size(), [&](size_t i) {
    const TunedKernel &kernel = *rows[i].kernel;
    clocks[i] = kernel.generator->getCost(*kernel.spec, rows[i].config, target);
  });
  return clocks;
}
