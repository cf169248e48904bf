//===- fp8-translate.cpp - The translation driver -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/NVPTX/PTX.h"
#include "mlir/InitAllTranslations.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  mlir::registerAllTranslations();
  mlir::fp8::registerKernelTranslations();
  return mlir::failed(
      mlir::mlirTranslateMain(argc, argv, "fp8 translation driver"));
}
