//===- FatalErrors.cpp - How a tool ends when LLVM gives up ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FatalErrors.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>

static void printAndExit(void *tool, const char *reason, bool) {
  llvm::StringRef message(reason);
  llvm::errs() << static_cast<const char *>(tool) << ": error: "
               << (message.consume_front("IO failure on output stream: ")
                       ? "cannot write the output: "
                       : "")
               << message << '\n';
  llvm::sys::RunInterruptHandlers();
  // Streams that failed would fail again in their destructors.
  std::_Exit(1);
}

void mlir::fp8::handleFatalErrors(const char *tool) {
#ifdef SIGXFSZ
  // A file that may not grow is a write that fails, with an error.
  std::signal(SIGXFSZ, SIG_IGN);
#endif
  llvm::install_fatal_error_handler(printAndExit, const_cast<char *>(tool));
}
