//===- SM90.cpp - Hopper GPUs ---------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM90.h"
#include "../Fusion/FusionGenerator.h"
#include "../Fusion/FusionSpec.h"
#include "../Transpose/TransposeGenerator.h"
#include "../Transpose/TransposeSpec.h"
#include "MatmulGenerator.h"
#include "SM90Dialect.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr StringLiteral kChip = "sm_90a";

namespace {
class SM90 : public Architecture {
public:
  SM90() : Architecture(kChip) {
    addGenerator(MatmulSpec::kKind, createMatmulGeneratorSM90());
    addGenerator(FusionSpec::kKind, createFusionGenerator());
    addGenerator(TransposeSpec::kKind, createTransposeGenerator());
  }

  /// H100 and H200 in the SXM form: CUDA C++ Programming Guide, technical
  /// specifications by compute capability; the rates of L2 and memory are
  /// fitted to an H200 (docs/Kernels.md, "Selection"). The clock is that at
  /// which the data sheet of the H200 has its 1979 TFLOP/s, the memory's peak
  /// is from there too; what a launch takes is
  /// benchmarks/results/runtime_cuda.txt.
  GPUTargetAttr getTarget(MLIRContext *context) const override {
    return GPUTargetAttr::get(context, kChip, /*compute_capability=*/90,
                              /*features=*/"+ptx90", /*multiprocessors=*/132,
                              /*shared_bytes=*/232448, /*registers=*/65536,
                              /*mma_rate=*/4096, /*l2_rate=*/49,
                              /*memory_rate=*/34, /*clock=*/1830,
                              /*memory_peak=*/4800, /*launch_time=*/2500);
  }

  void registerDialects(DialectRegistry &registry) const override {
    registry.insert<SM90Dialect>();
  }
};
} // namespace

void fp8::registerSM90() { registerArchitecture(std::make_unique<SM90>()); }
