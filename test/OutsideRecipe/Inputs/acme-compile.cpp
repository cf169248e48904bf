//===- acme-compile.cpp - A compiler with recipes of its own --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Acme.h"

#include "fp8/InitAll.h"
#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Program/Interface.h"
#include "fp8/Program/SharedObject.h"
#include "fp8/Support/OutputFile.h"
#include "fp8/Target/CPU/Object.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::opt<std::string> input(cl::Positional, cl::Required);
static cl::opt<std::string> output("o", cl::desc("The shared object"));
static cl::opt<std::string> recipe("recipe");
static cl::opt<std::string> recipeFile("recipe-file");
static cl::opt<std::string> to("to",
                               cl::desc("Print the program after a phase"));
static cl::opt<bool> functionalState("functional-state");

static LogicalResult compile(ModuleOp module, StringRef from, StringRef last) {
  fp8::PipelineOptions options;
  options.recipe = recipe;
  options.recipeFile = recipeFile;
  options.functionalState = functionalState;
  options.from = from;
  options.to = last;
  PassManager pm(module.getContext());
  return success(
      succeeded(fp8::buildPipeline(
          pm, options, [&] { return emitError(module.getLoc()); })) &&
      succeeded(pm.run(module)));
}

/// The shared object of `module`, as fp8-compile makes it.
static llvm::Expected<std::string> makeProgram(ModuleOp module) {
  auto fail = [] { return llvm::createStringError("no program"); };
  // With the state as tensors, they are part of the interface.
  if (functionalState && failed(compile(module, "import", "scaling")))
    return fail();
  auto program = fp8::ProgramInterface::create(
      module, llvm::sys::path::stem(output), fp8::PipelineOptions());
  if (failed(program))
    return fail();
  auto processor = fp8::Processor::get("native");
  if (!processor)
    return processor.takeError();
  program->processor = std::move(*processor);
  if (failed(compile(module, functionalState ? "fusion" : "import", "host")) ||
      failed(program->complete(module)))
    return fail();
  fp8::ObjectOptions options;
  options.addInterface = [&](llvm::Module &translated) {
    fp8::addCInterface(translated, *program);
  };
  auto object = fp8::emitObject(module, options);
  if (!object)
    return object.takeError();
  return fp8::linkSharedObject(*object, llvm::sys::path::filename(output));
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv);
  DialectRegistry registry;
  fp8::registerPipelineDialects(registry);
  acme::registerAcme(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  auto module = parseSourceFile<ModuleOp>(input, sources, &context);
  if (!module)
    return 1;
  if (!to.empty()) {
    if (failed(compile(*module, "import", to)))
      return 1;
    llvm::outs() << *module << '\n';
    return 0;
  }
  auto program = makeProgram(*module);
  llvm::Error error =
      program ? fp8::writeOutputFile(output, *program) : program.takeError();
  if (!error)
    return 0;
  llvm::errs() << "acme-compile: " << llvm::toString(std::move(error)) << '\n';
  return 1;
}
