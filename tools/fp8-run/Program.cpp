//===- Program.cpp - Compile, run, report -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "HostTensor.h"
#include "Invocation.h"
#include "Report.h"
#include "Signature.h"

#include "fp8/IR/FP8Dialect.h"
#include "fp8/InitAll.h"
#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Pipelines/Remarks.h"
#include "fp8/Runtime/Stats.h"
#include "fp8/Target/CPU/Object.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"

#include <chrono>
#include <unistd.h>

using namespace mlir;
using namespace mlir::fp8;

static double getSeconds() {
  std::chrono::duration<double> time =
      std::chrono::steady_clock::now().time_since_epoch();
  return time.count();
}

static int onMessage(const char *text) {
  llvm::errs() << text << '\n';
  return 0;
}

/// A failed assertion has printed its message; what remains is to end without
/// a core dump and without outputs.
static void onAbort() {
  std::fflush(nullptr);
  llvm::errs() << "fp8-run: error: the program aborted\n";
  ::_exit(1);
}

/// Leaves of the module what `entry` needs: other functions cost time, and
/// their mistakes are not of interest.
static LogicalResult isolate(ModuleOp module, func::FuncOp entry) {
  for (auto function : module.getOps<FunctionOpInterface>())
    SymbolTable::setSymbolVisibility(function,
                                     SymbolTable::Visibility::Private);
  entry.setPublic();
  entry->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                 UnitAttr::get(module->getContext()));
  PassManager pm(module->getContext());
  pm.addPass(createSymbolDCEPass());
  return pm.run(module);
}

static LogicalResult compile(ModuleOp module, const RunOptions &options) {
  PipelineOptions pipeline;
  pipeline.recipe = options.recipe;
  pipeline.recipeFile = options.recipeFile;
  pipeline.target = options.target;
  pipeline.stats = options.stats;
  pipeline.require = options.require;
  pipeline.maxPadding = options.maxPadding;
  if (!options.compileTo.empty() && options.compileTo != "binary")
    pipeline.to = options.compileTo;
  PassManager pm(module->getContext());
  auto reportError = [&] {
    return emitError(UnknownLoc::get(module->getContext()));
  };
  if (failed(buildPipeline(pm, pipeline, reportError)))
    return failure();
  return pm.run(module);
}

/// Repeats a short program often and a long one a few times.
static llvm::Expected<std::vector<double>> measure(Invocation &invocation) {
  constexpr size_t minRuns = 5, maxRuns = 101;
  constexpr double budget = 1.0;
  std::vector<double> runs;
  double start = getSeconds();
  while (runs.size() < minRuns ||
         (runs.size() < maxRuns && getSeconds() - start < budget)) {
    double seconds;
    if (auto outputs = invocation.run(&seconds); !outputs)
      return outputs.takeError();
    runs.push_back(seconds);
  }
  return runs;
}

static llvm::Error execute(ModuleOp module, const Signature &signature,
                           ArrayRef<HostTensor> arguments, double start,
                           const RunOptions &options) {
  if (module->hasAttr(kStateManifestAttrName))
    return llvm::createStringError("expected a recipe without state, such as "
                                   "current: fp8-run keeps none yet");
  CPUEngineOptions engineOptions;
  engineOptions.onMessage = onMessage;
  engineOptions.onAbort = onAbort;
  auto engine = CPUEngine::create(module, engineOptions);
  if (!engine)
    return engine.takeError();
  auto function = (*engine)->lookup(signature.entry);
  if (!function)
    return function.takeError();
  double compileTime = getSeconds() - start;

  Invocation invocation(signature, arguments, *function);
  auto outputs = invocation.run();
  if (!outputs)
    return outputs.takeError();
  if (!options.outputs.empty()) {
    if (llvm::Error error = writeTensors(*outputs, options.outputs))
      return error;
  } else {
    for (const HostTensor &output : *outputs)
      printSummary(output, llvm::outs());
  }
  if (options.stats) {
    auto names = module->getAttrOfType<ArrayAttr>(kStatsSlotsAttrName);
    printStats(names ? names.getValue() : ArrayRef<Attribute>(), llvm::outs());
  }
  if (options.time) {
    auto runs = measure(invocation);
    if (!runs)
      return runs.takeError();
    printTimes(compileTime, std::move(*runs), llvm::outs());
  }
  return llvm::Error::success();
}

/// Phase `binary`: an object file in place of tensors.
static llvm::Expected<bool> writeObject(ModuleOp module,
                                        const RunOptions &options) {
  if (options.outputs.empty())
    return llvm::createStringError(
        "expected --outputs=FILE.o with --compile-to=binary");
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                        UnitAttr::get(module->getContext()));
  if (failed(compile(module, options)))
    return false;
  SmallVector<char> object;
  llvm::raw_svector_ostream os(object);
  if (llvm::Error error = emitObject(module, os))
    return error;
  auto write = [&](raw_ostream &file) -> llvm::Error {
    file << os.str();
    return llvm::Error::success();
  };
  if (llvm::Error error = llvm::writeToOutput(options.outputs, write))
    return error;
  return true;
}

llvm::Expected<bool> mlir::fp8::runProgram(const RunOptions &options) {
  DialectRegistry registry;
  registerPipelineDialects(registry);
  MLIRContext context(registry);
  // The source is shown; the operation, which may hold a whole module, says
  // nothing to the author of the program.
  context.printOpOnDiagnostic(false);

  std::string message;
  if (!options.remarks.empty() &&
      failed(enableRemarks(&context, options.remarks, message)))
    return llvm::createStringError(message);
  auto file = openInputFile(options.file, &message);
  if (!file)
    return llvm::createStringError(message);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return false;

  if (options.compileTo == "binary")
    return writeObject(*module, options);
  if (!options.compileTo.empty()) {
    if (failed(compile(*module, options)))
      return false;
    module->print(llvm::outs());
    return true;
  }

  FailureOr<func::FuncOp> entry = findEntry(*module, options.entry);
  if (failed(entry))
    return false;
  FailureOr<Signature> signature = getSignature(*entry);
  if (failed(signature))
    return false;
  // Before the work of compiling: most mistakes are in the inputs.
  auto arguments = readTensors(signature->arguments, options.inputs);
  if (!arguments)
    return arguments.takeError();
  double start = getSeconds();
  if (failed(isolate(*module, *entry)) || failed(compile(*module, options)))
    return false;
  if (llvm::Error error =
          execute(*module, *signature, *arguments, start, options))
    return error;
  return true;
}
