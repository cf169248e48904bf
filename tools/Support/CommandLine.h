//===- CommandLine.h - What the tools' command lines share ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Through LLVM's option tables rather than its global options: those would add
// the hundreds that its libraries define, and collide with `--stats`.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_SUPPORT_COMMANDLINE_H
#define FP8_TOOLS_SUPPORT_COMMANDLINE_H

#include "llvm/Option/Arg.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Option/OptTable.h"
#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// Checks that `arg` is an option of `table`, and has a value if it wants one.
llvm::Error checkOption(const llvm::opt::OptTable &table,
                        const llvm::opt::InputArgList &args,
                        const llvm::opt::Arg &arg);

/// `argv` as options of `table`, all of which it has. Where the help is asked
/// for, by the option `help`, the others do not matter.
llvm::Expected<llvm::opt::InputArgList>
parseArguments(const llvm::opt::OptTable &table, int argc, char **argv,
               llvm::opt::OptSpecifier help);

/// The only argument that is no option.
llvm::Expected<std::string> getInputFile(const llvm::opt::InputArgList &args);

/// The value of `arg`; empty for a flag.
llvm::StringRef getValue(const llvm::opt::Arg &arg);

/// "expected EXPECTED after '--option=', but got 'value'".
llvm::Error makeValueError(const llvm::opt::Arg &arg, llvm::StringRef expected);

llvm::Error parseNumber(const llvm::opt::Arg &arg, double &number);
llvm::Error parseCount(const llvm::opt::Arg &arg, int64_t &count);

/// The exit status of `tool`: 1, not 0, after an error, which is printed unless
/// it has been reported.
/// Tells the user of an error at a point that cannot return one; `finish` does
/// not report success then.
void noteError(llvm::Error error);

int finish(llvm::StringRef tool, llvm::Error error);
/// The same, where false stands for what has been reported too.
int finish(llvm::StringRef tool, llvm::Expected<bool> succeeded);

} // namespace mlir::fp8

#endif // FP8_TOOLS_SUPPORT_COMMANDLINE_H
