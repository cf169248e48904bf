//===- Architecture.cpp - The GPUs that kernels are built for -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::fp8;

#include "fp8/Kernels/KernelOpInterface.cpp.inc"

KernelSpec::~KernelSpec() = default;
KernelGenerator::~KernelGenerator() = default;
Architecture::~Architecture() = default;

FailureOr<KernelConfigAttrInterface>
KernelGenerator::select(const KernelSpec &spec, GPUTargetAttr target,
                        std::string &reason) const {
  SmallVector<KernelConfigAttrInterface> candidates =
      getCandidates(spec, target);
  if (candidates.empty()) {
    reason = "no config of the table fits";
    return failure();
  }
  if (!spec.hasKnownExtents())
    return candidates.front();
  KernelConfigAttrInterface best;
  double bestCost = 0;
  for (KernelConfigAttrInterface config : candidates)
    if (double cost = getCost(spec, config, target); !best || cost < bestCost) {
      best = config;
      bestCost = cost;
    }
  return best;
}

void Architecture::addGenerator(StringRef kind,
                                std::unique_ptr<KernelGenerator> generator) {
  generators[kind] = std::move(generator);
}

const KernelGenerator *Architecture::getGenerator(const KernelSpec &spec,
                                                  std::string &reason) const {
  auto found = generators.find(spec.getKind());
  if (found != generators.end())
    return found->second.get();
  reason = ("expected an architecture with " + spec.getKind() +
            " kernels, but got " + chip)
               .str();
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The registry
//===----------------------------------------------------------------------===//

static std::vector<std::unique_ptr<Architecture>> &getArchitectures() {
  static std::vector<std::unique_ptr<Architecture>> architectures;
  return architectures;
}

void fp8::registerArchitecture(std::unique_ptr<Architecture> architecture) {
  if (!lookupArchitecture(architecture->getChip()))
    getArchitectures().push_back(std::move(architecture));
}

const Architecture *fp8::lookupArchitecture(StringRef chip) {
  for (const auto &architecture : getArchitectures())
    if (architecture->getChip() == chip)
      return architecture.get();
  return nullptr;
}

StringRef fp8::getPortableChip() {
  for (const auto &architecture : getArchitectures())
    if (architecture->isPortable())
      return architecture->getChip();
  return "";
}

SmallVector<StringRef> fp8::getArchitectureChips() {
  SmallVector<StringRef> chips;
  for (const auto &architecture : getArchitectures())
    chips.push_back(architecture->getChip());
  return chips;
}
