//===- fp8-compile.cpp - Programs to shared objects -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "Compile.h"
#include "Options.h"

#include "llvm/Support/InitLLVM.h"

using namespace mlir::fp8;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  auto options = parseOptions(argc, argv);
  if (options && options->help)
    return 0;
  return finish("fp8-compile",
                options ? compileFile(*options) : options.takeError());
}
