//===- MatmulAccumulation.cpp - How a kernel adds up products -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/Matmul/MatmulAccumulation.h"
#include "../TargetLookup.h"
#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"

using namespace mlir;
using namespace mlir::fp8;

static FailureOr<MatmulSpec> getSpec(Operation *op) {
  std::string unused;
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return MatmulSpec::get(matmul, unused);
  if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
    return MatmulSpec::get(grouped, unused);
  return failure();
}

std::optional<TensorCoreAccumulation>
fp8::getAccumulationOfKernel(Operation *op) {
  Operation *chosen = op;
  if (auto group = dyn_cast<SiblingMatmulsOp>(op->getParentOp()))
    chosen = group;
  auto config =
      chosen->getAttrOfType<KernelConfigAttrInterface>(kConfigAttrName);
  if (!config)
    return std::nullopt;
  FailureOr<KernelTarget> target =
      lookupTarget(op->getParentOfType<ModuleOp>());
  FailureOr<MatmulSpec> spec = getSpec(op);
  if (failed(target) || failed(spec))
    return std::nullopt;
  std::string unused;
  const KernelGenerator *generator =
      target->architecture->getGenerator(*spec, unused);
  return generator ? generator->getSums(*spec, config) : std::nullopt;
}
