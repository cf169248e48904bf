//===- MatmulClocks.cpp - What matmuls are expected to take ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulClocks.h"

using namespace mlir;
using namespace mlir::fp8;

std::optional<double> fp8::getExpectedClocks(Operation *op,
                                             const KernelTarget &target,
                                             std::optional<int64_t> rows) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  if (failed(spec))
    return std::nullopt;
  if (rows && ShapedType::isDynamic(spec->m))
    spec->m = *rows;
  FailureOr<SelectedKernel> kernel = selectKernel(*spec, target, unused);
  if (failed(kernel))
    return std::nullopt;
  return kernel->getCost(*spec, target);
}

bool fp8::knowsRows(Operation *op) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  return succeeded(spec) && !ShapedType::isDynamic(spec->m);
}

double fp8::getDecodeClocks(ScaledType type, const KernelTarget &target,
                            int64_t unknown) {
  double elements = 1;
  for (int64_t extent : type.getShape())
    elements *= double(ShapedType::isDynamic(extent) ? unknown : extent);
  double code = type.getElementType().getIntOrFloatBitWidth() / 8.0;
  double bytes = elements * (code + 1.0 / double(type.getBlock().back()) + 2);
  GPUTargetAttr gpu = target.attribute;
  return bytes / double(gpu.getMemoryRate() * gpu.getMultiprocessors()) +
         double(gpu.getLaunchTime() * gpu.getClock()) / 1000;
}
