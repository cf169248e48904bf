//===- fp8-translate.cpp - The translation driver -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FatalErrors.h"
#include "fp8/Support/Nesting.h"
#include "fp8/Target/NVPTX/PTX.h"
#include "mlir/InitAllTranslations.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  mlir::fp8::handleFatalErrors("fp8-translate");
  // Upstream would ask for it once for each of its options.
  if (llvm::none_of(llvm::ArrayRef(argv + 1, argv + argc),
                    [](llvm::StringRef arg) { return arg.starts_with("-"); })) {
    llvm::errs() << "fp8-translate: error: expected a translation, e.g. "
                    "--mlir-to-llvmir, but got none; see --help\n";
    return 1;
  }
  if (llvm::Error error = mlir::fp8::checkNestingOfFiles(
          llvm::ArrayRef(argv + 1, argv + argc))) {
    llvm::errs() << "fp8-translate: error: " << llvm::toString(std::move(error))
                 << '\n';
    return 1;
  }
  mlir::registerAllTranslations();
  mlir::fp8::registerKernelTranslations();
  return mlir::failed(
      mlir::mlirTranslateMain(argc, argv, "fp8 translation driver"));
}
