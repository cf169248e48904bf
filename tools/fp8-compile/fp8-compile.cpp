//===- fp8-compile.cpp - Programs to shared objects -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "Options.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::fp8;

static int fail(llvm::Error error) {
  llvm::errs() << "fp8-compile: error: " << llvm::toString(std::move(error))
               << '\n';
  return 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  auto options = parseOptions(argc, argv);
  if (!options)
    return fail(options.takeError());
  if (options->help)
    return 0;
  auto succeeded = compileFile(*options);
  if (!succeeded)
    return fail(succeeded.takeError());
  return *succeeded ? 0 : 1;
}
