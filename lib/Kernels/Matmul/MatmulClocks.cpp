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

bool fp8::transposesCodes(const MatmulSpec &spec,
                          const SelectedKernel &kernel) {
  auto isTurned = [](const OperandSpec &operand) {
    return operand.major == Major::MN && operand.getElementBytes() == 1;
  };
  if (!isTurned(spec.a) && !isTurned(spec.b))
    return false;
  std::optional<TensorCoreAccumulation> sums =
      kernel.generator->getSums(spec, kernel.config);
  return sums && sums->instruction == TensorCoreInstruction::WGMMA;
}

/// Extents that are not known are `unknown`.
static double countElements(ArrayRef<int64_t> shape, int64_t unknown) {
  double elements = 1;
  for (int64_t extent : shape)
    elements *= double(ShapedType::isDynamic(extent) ? unknown : extent);
  return elements;
}

/// Bytes of memory that a pass moves in a clock, with so much of its peak.
static double getPassRate(GPUTargetAttr gpu, double share) {
  return gpu.getMemoryPeak() == 0
             ? double(gpu.getMemoryRate() * gpu.getMultiprocessors())
             : share * 1000 * double(gpu.getMemoryPeak()) /
                   double(gpu.getClock());
}

static double getLaunchClocks(GPUTargetAttr gpu) {
  return double(gpu.getLaunchTime() * gpu.getClock()) / 1000;
}

double fp8::getTransposeClocks(RankedTensorType codes, bool isRead,
                               const KernelTarget &target) {
  // Copies beside products of 16 to 235 MB had this of the memory's peak, and
  // this of a launch's time, on an H200 (benchmarks/results/transposing.txt).
  constexpr double kShareOfPeak = 0.83, kShareOfLaunch = 0.5;
  double bytes = countElements(codes.getShape(), MatmulSpec::kUsualExtent);
  GPUTargetAttr gpu = target.attribute;
  double rate = getPassRate(gpu, kShareOfPeak);
  return isRead ? 2 * bytes / rate + kShareOfLaunch * getLaunchClocks(gpu)
                : bytes / rate;
}

double fp8::getDecodeClocks(ScaledType type, const KernelTarget &target,
                            int64_t unknown) {
  // A copy of what no cache has takes this of the peak. By L2's rate a product
  // of 1100 x 5120 x 5120 was decoded first, and took 1.46 times as long as by
  // a kernel that decodes (benchmarks/results/weight_only.txt).
  constexpr double kShareOfPeak = 0.58;
  double elements = countElements(type.getShape(), unknown);
  double code = type.getElementType().getIntOrFloatBitWidth() / 8.0;
  double bytes = elements * (code + 1.0 / double(type.getBlock().back()) + 2);
  return bytes / getPassRate(target.attribute, kShareOfPeak) +
         getLaunchClocks(target.attribute);
}
