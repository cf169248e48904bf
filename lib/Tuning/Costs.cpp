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
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/JSON.h"

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

void fp8::printCosts(ModuleOp module, raw_ostream &os) {
  auto target = module->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  const Architecture *architecture = lookupArchitecture(target.getChip());
  llvm::json::OStream json(os);
  json.array([&] {
    module.walk([&](KernelOpInterface op) {
      std::string reason;
      FailureOr<std::unique_ptr<KernelSpec>> spec = op.getKernelSpec(reason);
      const KernelGenerator *generator =
          succeeded(spec) ? architecture->getGenerator(**spec, reason)
                          : nullptr;
      if (generator && !(*spec)->hasKnownExtents())
        reason = "not all of its extents are known";
      if (!generator || !(*spec)->hasKnownExtents()) {
        op->emitRemark() << "no costs: " << reason;
        return;
      }
      TunedKernel kernel{op, std::move(*spec), generator, target};
      json.object([&] { printKernel(json, kernel); });
    });
  });
  os << "\n";
}
