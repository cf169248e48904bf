//===- fp8-state.cpp - Work with saved states of delayed scaling ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "FatalErrors.h"

#include "fp8/Support/Shorten.h"

#include "llvm/Support/InitLLVM.h"

using namespace mlir::fp8;

/// The exit status, which is diff's.
static llvm::Expected<int> run(const StateOptions &options) {
  switch (options.command) {
  case StateOptions::Help:
    return 0;
  case StateOptions::Print:
    if (llvm::Error error = printState(options, llvm::outs()))
      return error;
    return 0;
  case StateOptions::Compare: {
    auto same = compareStates(options, llvm::outs());
    if (!same)
      return same.takeError();
    return *same ? 0 : 1;
  }
  case StateOptions::Edit:
    if (llvm::Error error = editState(options))
      return error;
    return 0;
  }
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  handleFatalErrors("fp8-state");
  auto options = parseOptions(argc, argv);
  auto status = options ? run(*options) : options.takeError();
  if (status)
    return *status;
  llvm::errs() << "fp8-state: error: "
               << shortenWords(llvm::toString(status.takeError())) << '\n';
  return 2;
}
