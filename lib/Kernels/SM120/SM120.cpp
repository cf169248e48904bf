//===- SM120.cpp - Small Blackwell GPUs -----------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM120.h"
#include "../Mma/MmaArchitecture.h"

using namespace mlir;
using namespace mlir::fp8;

void fp8::registerSM120() {
  for (StringRef chip : {"sm_120a", "sm_121a"})
    registerArchitecture(std::make_unique<mma::MmaArchitecture>(
        chip, mma::ProductsOfCodes::Wide));
}
