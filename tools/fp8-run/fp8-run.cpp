//===- fp8-run.cpp - Compile and run with tensors from a file -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "FatalErrors.h"
#include "Options.h"
#include "Run.h"

#include "llvm/Support/InitLLVM.h"

#include <limits>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace mlir::fp8;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  handleFatalErrors("fp8-run");
#ifdef __GLIBC__
  // A program allocates its temporaries anew in every run. Kept in the process
  // they cost nothing; returned to the system, their page faults would cost
  // more than the arithmetic.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
  auto options = parseOptions(argc, argv);
  if (options && options->help)
    return 0;
  return finish("fp8-run",
                options ? runProgram(*options) : options.takeError());
}
