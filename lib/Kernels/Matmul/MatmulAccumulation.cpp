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

std::optional<TensorCoreAccumulation>
fp8::getAccumulationOfKernel(Operation *op) {
  Operation *chosen = op;
  if (auto group = dyn_cast<SiblingMatmulsOp>(op->getParentOp()))
    chosen = group;
  auto config =
      chosen->getAttrOfType<KernelConfigAttrInterface>(kConfigAttrName);
  if (!config || !isa<MatmulOp, GroupedMatmulOp>(op))
    return std::nullopt;
  FailureOr<KernelTarget> target =
      lookupTarget(op->getParentOfType<ModuleOp>());
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  if (failed(target) || failed(spec))
    return std::nullopt;
  const KernelGenerator *generator =
      target->architecture->getGenerator(*spec, unused);
  return generator ? generator->getSums(*spec, config) : std::nullopt;
}
