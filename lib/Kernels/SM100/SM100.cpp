//===- SM100.cpp - Blackwell GPUs -----------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM100.h"
#include "../Fusion/FusionGenerator.h"
#include "../Fusion/FusionSpec.h"
#include "../Transpose/TransposeGenerator.h"
#include "../Transpose/TransposeSpec.h"
#include "MatmulGenerator.h"
#include "SM100Dialect.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr StringLiteral kChip = "sm_100a";

namespace {
class SM100 : public Architecture {
public:
  SM100() : Architecture(kChip) {
    addGenerator(MatmulSpec::kKind, sm100::createMatmulGenerator());
    addGenerator(FusionSpec::kKind, createFusionGenerator());
    addGenerator(TransposeSpec::kKind, createTransposeGenerator());
  }

  /// A B200, as others have published it and measured; we have measured none.
  /// The tensor core's rate and the clock are those of the data sheet's 4500
  /// TFLOP/s of dense FP8; what a launch takes is Hopper's.
  GPUTargetAttr getTarget(MLIRContext *context) const override {
    return GPUTargetAttr::get(context, kChip, /*compute_capability=*/100,
                              /*features=*/"+ptx90", /*multiprocessors=*/148,
                              /*shared_bytes=*/232448, /*registers=*/65536,
                              /*mma_rate=*/8192, /*l2_rate=*/69,
                              /*memory_rate=*/25, /*clock=*/1856,
                              /*memory_peak=*/7670, /*launch_time=*/2500);
  }

  void registerDialects(DialectRegistry &registry) const override {
    registry.insert<sm100::SM100Dialect>();
  }
};
} // namespace

void fp8::registerSM100() { registerArchitecture(std::make_unique<SM100>()); }
