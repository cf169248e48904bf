//===- fp8-reduce.cpp - Test case reduction for modules with fp8 ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FatalErrors.h"
#include "fp8/InitAll.h"
#include "fp8/Support/Nesting.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

using namespace mlir;

int main(int argc, char **argv) {
  fp8::handleFatalErrors("fp8-reduce");
  // Upstream would look for a file without a name.
  if (llvm::all_of(ArrayRef(argv + 1, argv + argc), [](StringRef arg) {
        return arg.starts_with("-") && !arg.trim('-').starts_with("h") &&
               !arg.trim('-').starts_with("v");
      })) {
    llvm::errs() << "fp8-reduce: error: expected one input file, but got 0; "
                    "see --help\n";
    return 1;
  }
  if (llvm::Error error =
          fp8::checkNestingOfFiles(llvm::ArrayRef(argv + 1, argv + argc))) {
    llvm::errs() << "fp8-reduce: error: " << llvm::toString(std::move(error))
                 << '\n';
    return 1;
  }
  fp8::registerAllPasses();
  DialectRegistry registry;
  fp8::registerAllDialects(registry);
  MLIRContext context(registry);
  return failed(mlirReduceMain(argc, argv, context));
}
