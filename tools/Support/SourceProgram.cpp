//===- SourceProgram.cpp - Reading and compiling a program ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SourceProgram.h"

#include "CommandLine.h"

#include "fp8/InitAll.h"
#include "fp8/Pipelines/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"

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
  if (key.consume_front("no-"))
    value = "false";
  const auto *option = findOption(getPipelineOptions(), key);
  if (!option)
    return false;
  if (StringRef expected = option->set(options.pipeline, value);
      !expected.empty())
    return makeValueError(arg, expected);
  return true;
}

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerPipelineDialects(registry);
  return registry;
}

SourceProgram::SourceProgram()
    : context(makeRegistry()), sources(std::make_shared<llvm::SourceMgr>()),
      diagnostics(*sources, &context) {
  // The source is shown; the operation, which may hold a whole module, says
  // nothing to the author of the program.
  context.printOpOnDiagnostic(false);
}

llvm::Expected<std::unique_ptr<SourceProgram>>
SourceProgram::read(const CompilerOptions &options) {
  std::string message;
  auto file = openInputFile(options.file, &message);
  if (!file)
    return llvm::createStringError(message);
  return read(options, std::move(file));
}

llvm::Expected<std::unique_ptr<SourceProgram>>
SourceProgram::read(const CompilerOptions &options,
                    std::unique_ptr<llvm::MemoryBuffer> text) {
  std::unique_ptr<SourceProgram> program(new SourceProgram);
  std::string message;
  if (!options.remarks.empty() &&
      failed(enableRemarks(&program->context, options.remarks, message)))
    return llvm::createStringError(message);
  program->sources->AddNewSourceBuffer(std::move(text), llvm::SMLoc());
  program->module =
      parseSourceFile<ModuleOp>(program->sources, &program->context);
  if (!program->module)
    return nullptr;
  return program;
}

LogicalResult fp8::compileProgram(ModuleOp module,
                                  const PipelineOptions &options) {
  PassManager pm(module->getContext());
  auto reportError = [&] {
    return emitError(UnknownLoc::get(module->getContext()));
  };
  if (failed(buildPipeline(pm, options, reportError)))
    return failure();
  return pm.run(module);
}
