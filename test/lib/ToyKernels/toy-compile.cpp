//===- toy-compile.cpp - fp8-compile with an architecture from outside ----===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: toy-compile PROGRAM.mlir PROGRAM.so
//
//===----------------------------------------------------------------------===//

#include "Toy.h"

#include "fp8/InitAll.h"
#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Program/Interface.h"
#include "fp8/Program/SharedObject.h"
#include "fp8/Support/OutputFile.h"
#include "fp8/Target/CPU/Object.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

static llvm::Error compile(StringRef source, const std::string &output) {
  DialectRegistry registry;
  fp8::registerPipelineDialects(registry);
  MLIRContext context(registry);
  auto module = parseSourceFile<ModuleOp>(source, &context);
  if (!module)
    return llvm::createStringError("expected a program");
  fp8::PipelineOptions options;
  options.target = "sm_80";
  options.kernelFormat = "ptx";
  FailureOr<fp8::ProgramInterface> program =
      fp8::ProgramInterface::create(*module, "toy", options);
  PassManager pm(&context);
  auto emitError = [&] { return module->emitError(); };
  if (failed(program) || failed(buildPipeline(pm, options, emitError)) ||
      failed(pm.run(*module)) || failed(program->complete(*module)))
    return llvm::createStringError("expected a program that compiles");
  auto processor = fp8::Processor::get("native");
  if (!processor)
    return processor.takeError();
  program->processor = std::move(*processor);
  fp8::ObjectOptions object;
  object.addInterface = [&](llvm::Module &translated) {
    addCInterface(translated, *program);
  };
  auto code = emitObject(*module, object);
  if (!code)
    return code.takeError();
  auto linked = fp8::linkSharedObject(*code, "toy.so");
  if (!linked)
    return linked.takeError();
  return fp8::writeOutputFile(output, *linked);
}

int main(int argc, char **argv) {
  toy::registerToyArchitecture();
  llvm::ExitOnError exit("toy-compile: ");
  if (argc != 3)
    exit(llvm::createStringError("expected PROGRAM.mlir and PROGRAM.so"));
  exit(compile(argv[1], argv[2]));
  return 0;
}
