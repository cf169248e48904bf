//===- Compile.cpp - From a module to machine code ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Compile.h"

#include "CompileHost.h"
#include "EmitKernels.h"
#include "EndlessCalls.h"
#include "Tune.h"
#include "fp8/Compiler/Monitor.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/Support/OutputFile.h"
#include "fp8/Support/ReportedError.h"
#include "fp8/Target/CPU/Object.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

LogicalResult fp8::runPipeline(ModuleOp module, const PipelineOptions &options,
                               Monitor *monitor) {
  PassManager pm(module->getContext());
#ifdef NDEBUG
  // To verify everything after each of eighty passes takes as long as they do;
  // the end of each phase verifies as well.
  pm.enableVerifier(false);
#endif
  auto reportError = [&] {
    return emitError(UnknownLoc::get(module->getContext()));
  };
  if (failed(buildPipeline(pm, options, reportError)))
    return failure();
  if (monitor) {
    monitor->beginStep("run passes");
    monitor->observe(pm);
  }
  if (failed(pm.run(module)))
    return failure();
  return failure(monitor && monitor->isStopped());
}

LogicalResult fp8::isolate(ModuleOp module, func::FuncOp entry) {
  llvm::StringSet<> wasPublic;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isPublic())
      wasPublic.insert(function.getName());
    SymbolTable::setSymbolVisibility(function,
                                     SymbolTable::Visibility::Private);
  }
  entry.setPublic();
  // Alone it takes and gives tensors as they are written.
  for (auto function : module.getOps<FunctionOpInterface>()) {
    auto strip = [&](DictionaryAttr attributes) {
      NamedAttrList list(attributes);
      list.erase(kSaveAttrName);
      list.erase(kSavedAttrName);
      return list.getDictionary(module->getContext());
    };
    SmallVector<DictionaryAttr> arguments, results;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      arguments.push_back(strip(function.getArgAttrDict(i)));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      results.push_back(strip(function.getResultAttrDict(i)));
    function.setAllArgAttrs(arguments);
    function.setAllResultAttrs(results);
  }
  PassManager pm(module->getContext());
  pm.addPass(createSymbolDCEPass());
  if (failed(pm.run(module)))
    return failure();
  for (auto function : module.getOps<FunctionOpInterface>())
    if (wasPublic.contains(function.getName()) && !function.isExternal())
      function.setPublic();
  return success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Whether functions pass tensors to each other, which fp8-save-quantized may
/// replace.
static bool passesSavedTensors(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return llvm::any_of(llvm::seq(function.getNumArguments()), [&](unsigned i) {
      return !!function.getArgAttr(i, kSavedAttrName);
    });
  });
}

llvm::Expected<CompiledProgram>
fp8::compileHost(ModuleOp module, const CompileOptions &options,
                 func::FuncOp entry, bool emitLLVM,
                 std::optional<ProgramVariant> variant) {
  if (options.to != stringifyPhase(Phase::Host))
    return llvm::createStringError(
        "expected '" + stringifyPhase(Phase::Host) +
        "' as the last phase of a program, but got '" + options.to + "'");
  if (failed(checkEndlessCalls(module)))
    return makeReportedError();
  PipelineOptions pipeline = options;
  if (pipeline.functionalState || passesSavedTensors(module)) {
    // What becomes of the functions' arguments and results is their interface.
    pipeline.to = stringifyPhase(Phase::Scaling).str();
    pipeline.fusionReport.clear();
    if (failed(runPipeline(module, pipeline, options.monitor)))
      return makeReportedError();
    pipeline.from = stringifyPhase(Phase::Fusion).str();
    pipeline.to = options.to;
    pipeline.fusionReport = options.fusionReport;
  }
  FailureOr<ProgramInterface> interface =
      ProgramInterface::create(module, options.name, options, entry);
  if (failed(interface))
    return makeReportedError();
  auto processor = Processor::get(options.cpu);
  if (!processor)
    return processor.takeError();
  interface->processor = std::move(*processor);
  interface->asVariant = std::move(variant);
  ObjectOptions object;
  if (StringRef(options.optLevel).getAsInteger(10, object.optLevel) ||
      object.optLevel > 3)
    return llvm::createStringError(
        "expected option 'opt-level' to be 0, 1, 2 or 3, but got '" +
        options.optLevel + "'");
  if (failed(runPipeline(module, pipeline, options.monitor)) ||
      failed(interface->complete(module)))
    return makeReportedError();

  object.cpu = options.cpu;
  object.emitLLVM = emitLLVM;
  if (options.monitor)
    object.beginStep = [&](StringRef step) {
      options.monitor->beginStep(step);
    };
  object.addInterface = [&](llvm::Module &translated) {
    addCInterface(translated, *interface);
  };
  auto code = emitObject(module, object);
  if (!code)
    return code.takeError();
  return CompiledProgram{std::move(*interface), {std::move(*code)}, options};
}

llvm::Expected<CompiledProgram>
fp8::compileProgram(ModuleOp module, const CompileOptions &options,
                    func::FuncOp entry) {
  if (StringRef(options.target).contains(','))
    return compileVariants(module, options, entry);
  auto settled = settleTarget(options);
  if (!settled)
    return settled.takeError();
  auto tuned = tuneKernels(module, std::move(*settled));
  if (!tuned)
    return tuned.takeError();
  return compileHost(module, *tuned, entry, /*emitLLVM=*/false);
}

/// Writes `code` to `path`, and the program's header.
static llvm::Error writeProgram(const CompiledProgram &program, StringRef code,
                                bool isShared, const std::string &path,
                                const std::string &headerPath) {
  SmallVector<OutputFile> files{{path, code, isShared}};
  std::string header;
  if (!headerPath.empty()) {
    auto text = program.getHeader(llvm::sys::path::filename(headerPath));
    if (!text)
      return text.takeError();
    header = std::move(*text);
    // Last: a build that waits for it finds the program.
    files.push_back({headerPath, header});
  }
  return writeOutputFiles(files);
}

llvm::Error CompiledProgram::writeObject(const std::string &path,
                                         const std::string &header) const {
  if (objects.size() > 1)
    return llvm::createStringError(
        "expected one target of a program that is not linked, but got '" +
        interface.target + "'");
  return writeProgram(*this, objects.front(), /*isShared=*/false, path, header);
}

llvm::Error
CompiledProgram::writeSharedObject(const std::string &path,
                                   const std::string &header) const {
  auto linked =
      linkSharedObject(objects, llvm::sys::path::filename(path), link);
  if (!linked)
    return linked.takeError();
  return writeProgram(*this, *linked, /*isShared=*/true, path, header);
}

//===----------------------------------------------------------------------===//
// Other code
//===----------------------------------------------------------------------===//

std::optional<CodeKind> fp8::symbolizeCodeKind(StringRef name) {
  return llvm::StringSwitch<std::optional<CodeKind>>(name)
      .Case("llvm", CodeKind::LLVM)
      .Case("ptx", CodeKind::PTX)
      .Case("cubin", CodeKind::Cubin)
      .Case("mlir", CodeKind::MLIR)
      .Default(std::nullopt);
}

llvm::Expected<std::string> fp8::emitCode(ModuleOp module, CodeKind kind,
                                          const CompileOptions &given) {
  auto settled = settleTarget(given);
  if (!settled)
    return settled.takeError();
  auto tuned = tuneKernels(module, std::move(*settled));
  if (!tuned)
    return tuned.takeError();
  const CompileOptions &options = *tuned;
  switch (kind) {
  case CodeKind::PTX:
  case CodeKind::Cubin:
    return emitKernels(module, kind, options);
  case CodeKind::LLVM: {
    auto program = compileHost(module, options, {}, /*emitLLVM=*/true);
    if (!program)
      return program.takeError();
    return std::move(program->objects.front());
  }
  case CodeKind::MLIR: {
    if (failed(runPipeline(module, options, options.monitor)))
      return makeReportedError();
    std::string text;
    llvm::raw_string_ostream(text) << module << '\n';
    return text;
  }
  }
}
