//===- SM80.cpp - Ampere GPUs ---------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM80.h"
#include "../Mma/MmaArchitecture.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
class SM80 : public mma::MmaArchitecture {
public:
  SM80() : MmaArchitecture("sm_80", mma::ProductsOfCodes::Expanded) {}

  /// Those between it and Ada run its kernels.
  bool isPortable() const override { return true; }
};
} // namespace

void fp8::registerSM80() { registerArchitecture(std::make_unique<SM80>()); }
