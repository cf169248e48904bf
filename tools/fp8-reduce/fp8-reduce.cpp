//===- fp8-reduce.cpp - Test case reduction for modules with fp8 ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/InitAll.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

using namespace mlir;

int main(int argc, char **argv) {
  fp8::registerAllPasses();
  DialectRegistry registry;
  fp8::registerAllDialects(registry);
  MLIRContext context(registry);
  return failed(mlirReduceMain(argc, argv, context));
}
