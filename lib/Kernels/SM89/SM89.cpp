//===- SM89.cpp - Ada GPUs ------------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SM89.h"
#include "../Mma/MmaArchitecture.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
class SM89 : public mma::MmaArchitecture {
public:
  SM89() : MmaArchitecture("sm_89", mma::ProductsOfCodes::Narrow) {}

  /// It has no features that later chips lack.
  bool isPortable() const override { return true; }
};
} // namespace

void fp8::registerSM89() { registerArchitecture(std::make_unique<SM89>()); }
