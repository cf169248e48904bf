//===- fp8-run.cpp - Compile and run with tensors from a file ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Program.h"

#include "llvm/Support/InitLLVM.h"
#include <limits>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include "llvm/Support/raw_ostream.h"

using namespace mlir::fp8;

static int fail(llvm::Error error) {
  llvm::errs() << "fp8-run: error: " << llvm::toString(std::move(error))
               << '\n';
  return 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
#ifdef __GLIBC__
  // A program allocates its temporaries anew in every run. Kept in the process
  // they cost nothing; returned to the system, their page faults would cost
  // more than the arithmetic.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
  auto options = parseOptions(argc, argv);
  if (!options)
    return fail(options.takeError());
  if (options->help)
    return 0;
  auto succeeded = runProgram(*options);
  if (!succeeded)
    return fail(succeeded.takeError());
  return *succeeded ? 0 : 1;
}
