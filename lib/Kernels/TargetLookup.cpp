//===- TargetLookup.cpp - The architecture of a module --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetLookup.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;

FailureOr<KernelTarget> fp8::lookupTarget(ModuleOp module) {
  auto attribute = module->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  if (!attribute) {
    emitError(module.getLoc(), "expected a module with the attribute '")
        << kTargetAttrName << "', which fp8-set-target gives it";
    return failure();
  }
  const Architecture *architecture = lookupArchitecture(attribute.getChip());
  if (!architecture) {
    emitError(module.getLoc(), "expected '")
        << kTargetAttrName << "' to be of one of the chips "
        << llvm::join(getArchitectureChips(), ", ") << ", but got "
        << attribute;
    return failure();
  }
  return KernelTarget{attribute, architecture};
}

FailureOr<KernelTarget> fp8::lookupChip(ModuleOp module, StringRef chip) {
  const Architecture *architecture = lookupArchitecture(chip);
  if (!architecture) {
    emitError(module.getLoc(), "expected chip to be one of ")
        << llvm::join(getArchitectureChips(), ", ") << ", but got '" << chip
        << "'";
    return failure();
  }
  auto attribute = module->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  if (!attribute)
    attribute = architecture->getTarget(module.getContext());
  return KernelTarget{attribute, architecture};
}

double SelectedKernel::getCost(const MatmulSpec &spec,
                               const KernelTarget &target) const {
  return generator->getCost(spec.withUsualExtents(), config, target.attribute);
}

FailureOr<SelectedKernel> fp8::selectKernel(const KernelSpec &spec,
                                            const KernelTarget &target,
                                            std::string &reason) {
  const KernelGenerator *generator =
      target.architecture->getGenerator(spec, reason);
  if (!generator)
    return failure();
  FailureOr<KernelConfigAttrInterface> config =
      generator->select(spec, target.attribute, reason);
  if (failed(config))
    return failure();
  return SelectedKernel{generator, *config};
}

bool fp8::hasKernel(const KernelSpec &spec, const KernelTarget &target,
                    std::string &reason) {
  return succeeded(selectKernel(spec, target, reason));
}

bool fp8::hasKernel(Operation *op, const KernelTarget &target) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  return succeeded(spec) && hasKernel(*spec, target, unused);
}

bool fp8::multipliesFactors(Operation *op, const KernelTarget &target) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  if (failed(spec))
    return false;
  FailureOr<SelectedKernel> kernel = selectKernel(*spec, target, unused);
  if (failed(kernel))
    return false;
  std::optional<TensorCoreAccumulation> sums =
      kernel->generator->getSums(*spec, kernel->config);
  return sums && sums->multipliesFactors();
}
