//===- AllKernels.cpp - All architectures and kinds of kernels ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who adds an architecture, or a kind of kernels, adds a line here; of a kind
// whose kernels are for any GPU, two.
//
//===----------------------------------------------------------------------===//

#include "AllKernels.h"
#include "Fusion/FusionGenerator.h"
#include "Fusion/FusionSpec.h"
#include "SM100/SM100.h"
#include "SM120/SM120.h"
#include "SM80/SM80.h"
#include "SM89/SM89.h"
#include "SM90/SM90.h"
#include "Transpose/TransposeGenerator.h"
#include "Transpose/TransposeSpec.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/Kinds.h"
#include "mlir/IR/DialectRegistry.h"

#include <mutex>

using namespace mlir;
using namespace mlir::fp8;

void fp8::addPortableGenerators(Architecture &architecture) {
  architecture.addGenerator(FusionSpec::kKind, createFusionGenerator());
  architecture.addGenerator(TransposeSpec::kKind, createTransposeGenerator());
}

void fp8::registerAllArchitectures() {
  // Passes and pipelines ask for it, in any thread.
  static std::once_flag once;
  std::call_once(once, [] {
    registerSM90();
    registerSM100();
    registerSM89();
    registerSM120();
    // Behind sm_89, which is what `portable` stands for.
    registerSM80();
  });
}

void fp8::registerKernelDialects(DialectRegistry &registry) {
  registerAllArchitectures();
  for (StringRef chip : getArchitectureChips())
    lookupArchitecture(chip)->registerDialects(registry);
  registerAttentionKernels(registry);
  registerMatmulKernels(registry);
  registerFusionKernels(registry);
  registerTransposeKernels(registry);
}
