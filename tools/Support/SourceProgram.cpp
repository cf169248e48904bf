//===- SourceProgram.cpp - The program of a command line ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SourceProgram.h"

#include "CommandLine.h"

#include "fp8/Program/Interface.h"
#include "fp8/Report/Remarks.h"

using namespace mlir;
using namespace mlir::fp8;

llvm::Expected<bool> fp8::parseCompilerOption(const llvm::opt::Arg &arg,
                                              CompilerOptions &options) {
  StringRef key = arg.getOption().getName(), value = getValue(arg);
  key.consume_back("=");
  key.consume_front("fp8-");
  if (key == "remarks") {
    options.remarks = value;
    return true;
  }
  if (key == "load-dialect-plugin") {
    options.dialectPlugins.push_back(value.str());
    return true;
  }
  if (key == "mlir-timing") {
    options.timing = true;
    return true;
  }
  if (key == "tune" && value.empty())
    value = "on";
  if (key.consume_front("no-"))
    value = "false";
  std::optional<StringRef> set = trySetOption(options.pipeline, key, value);
  if (!set)
    return false;
  StringRef expected = *set;
  if (!expected.empty())
    return makeValueError(arg, expected);
  return true;
}

SourceProgram::SourceProgram(std::unique_ptr<MLIRContext> owned, Source program)
    : context(std::move(owned)), source(std::move(program)),
      errors(llvm::errs()),
      diagnostics(source.getManager(), context.get(), errors) {}

llvm::Expected<std::unique_ptr<SourceProgram>>
SourceProgram::read(const CompilerOptions &options) {
  auto source = Source::open(options.file);
  if (!source)
    return source.takeError();
  return parse(options, std::move(*source));
}

llvm::Expected<std::unique_ptr<SourceProgram>>
SourceProgram::read(const CompilerOptions &options,
                    std::unique_ptr<llvm::MemoryBuffer> text) {
  return parse(options, Source(std::move(text)));
}

llvm::Expected<std::unique_ptr<SourceProgram>>
SourceProgram::parse(const CompilerOptions &options, Source source) {
  auto context = createContext(options.dialectPlugins);
  if (!context)
    return context.takeError();
  std::unique_ptr<SourceProgram> program(
      new SourceProgram(std::move(*context), std::move(source)));
  std::string message;
  if (!options.remarks.empty() &&
      failed(enableRemarks(program->context.get(), options.remarks, noteError,
                           message)))
    return llvm::createStringError(message);
  if (llvm::Error error = program->source.parse(*program->context))
    return error;
  return program;
}
