//===- fp8-plugin.cpp - Dialect and passes for a stock mlir-opt -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mlir-opt --load-dialect-plugin=fp8-plugin.so --load-pass-plugin=fp8-plugin.so
//
//===----------------------------------------------------------------------===//

#include "fp8/InitAll.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

extern "C" LLVM_ATTRIBUTE_WEAK DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "fp8", FP8_VERSION,
          [](DialectRegistry *registry) {
            fp8::registerPipelineDialects(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "fp8", FP8_VERSION,
          [] { fp8::registerFP8Passes(); }};
}
