//===- CommandLine.cpp - What the tools' command lines share --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"

#include "fp8/Support/ReportedError.h"
#include "fp8/Support/Shorten.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm::opt;
using namespace mlir::fp8;

llvm::Error mlir::fp8::checkOption(const OptTable &table,
                                   const InputArgList &args, const Arg &arg) {
  std::string text = arg.getAsString(args);
  if (arg.getOption().getKind() == Option::UnknownClass) {
    std::string nearest, hint = "; see --help";
    if (table.findNearest(text, nearest) <= 2)
      hint = "; did you mean '" + nearest + "'?";
    return llvm::createStringError("unknown option '" + text + "'" + hint);
  }
  if (arg.getNumValues() == 1 && *arg.getValue() == '\0')
    return llvm::createStringError("expected a value after '" +
                                   arg.getSpelling() + "'");
  return llvm::Error::success();
}

llvm::Expected<InputArgList> mlir::fp8::parseArguments(const OptTable &table,
                                                       int argc, char **argv,
                                                       OptSpecifier help) {
  unsigned missingIndex = 0, missingCount = 0;
  InputArgList args = table.ParseArgs(llvm::ArrayRef(argv + 1, argv + argc),
                                      missingIndex, missingCount);
  if (args.hasArg(help))
    return args;
  if (missingCount)
    return llvm::createStringError(
        "expected a value after '" +
        llvm::Twine(args.getArgString(missingIndex)) + "'");
  for (const Arg *arg : args)
    if (llvm::Error error = checkOption(table, args, *arg))
      return error;
  return args;
}

llvm::Expected<std::string> mlir::fp8::getInputFile(const InputArgList &args) {
  llvm::SmallVector<llvm::StringRef> files;
  for (const Arg *arg : args)
    if (arg->getOption().getKind() == Option::InputClass)
      files.push_back(arg->getValue());
  if (files.size() != 1)
    return llvm::createStringError("expected one input file, but got " +
                                   llvm::Twine(files.size()) + "; see --help");
  return files.front().str();
}

llvm::StringRef mlir::fp8::getValue(const Arg &arg) {
  return arg.getNumValues() ? arg.getValue() : "";
}

llvm::Error mlir::fp8::makeValueError(const Arg &arg,
                                      llvm::StringRef expected) {
  return llvm::createStringError("expected " + expected + " after '" +
                                 arg.getSpelling() + "', but got '" +
                                 getValue(arg) + "'");
}

llvm::Error mlir::fp8::parseNumber(const Arg &arg, double &number) {
  if (getValue(arg).getAsDouble(number))
    return makeValueError(arg, "a number");
  return llvm::Error::success();
}

llvm::Error mlir::fp8::parseCount(const Arg &arg, int64_t &count) {
  if (getValue(arg).getAsInteger(10, count) || count < 1)
    return makeValueError(arg, "an integer of at least 1");
  return llvm::Error::success();
}

static bool hasNotedError = false;

void mlir::fp8::noteError(llvm::Error error) {
  hasNotedError = true;
  llvm::errs() << "error: " << shortenWords(llvm::toString(std::move(error)))
               << '\n';
}

int mlir::fp8::finish(llvm::StringRef tool, llvm::Error error) {
  bool failed = bool(error) || hasNotedError;
  llvm::handleAllErrors(
      std::move(error), [](const ReportedError &) {},
      [&](const llvm::ErrorInfoBase &info) {
        llvm::errs() << tool << ": error: " << shortenWords(info.message())
                     << '\n';
      });
  return failed ? 1 : 0;
}

int mlir::fp8::finish(llvm::StringRef tool, llvm::Expected<bool> succeeded) {
  if (succeeded)
    return *succeeded && !hasNotedError ? 0 : 1;
  return finish(tool, succeeded.takeError());
}
