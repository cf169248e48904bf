//===- toy-opt.cpp - fp8-opt with an architecture from outside ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Toy.h"

#include "fp8/InitAll.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  toy::registerToyArchitecture();
  mlir::DialectRegistry registry;
  mlir::fp8::registerAllDialects(registry);
  mlir::fp8::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "toy optimizer driver\n", registry));
}
