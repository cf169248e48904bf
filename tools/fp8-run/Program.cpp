//===- Program.cpp - Compile, run, report -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "Comparison.h"
#include "Executable.h"
#include "Execution.h"

#include "fp8/Target/Program/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/BinaryFormat/Magic.h"

#include <chrono>

using namespace mlir;
using namespace mlir::fp8;

/// Leaves of the module what `entry` needs: other functions cost time, and
/// their mistakes are not of interest. What stays is public if it was: the
/// slots of the scaling state depend on that.
static LogicalResult isolate(ModuleOp module, func::FuncOp entry) {
  llvm::StringSet<> wasPublic;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isPublic())
      wasPublic.insert(function.getName());
    SymbolTable::setSymbolVisibility(function,
                                     SymbolTable::Visibility::Private);
  }
  entry.setPublic();
  entry->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                 UnitAttr::get(module->getContext()));
  PassManager pm(module->getContext());
  pm.addPass(createSymbolDCEPass());
  if (failed(pm.run(module)))
    return failure();
  for (auto function : module.getOps<FunctionOpInterface>())
    if (wasPublic.contains(function.getName()) && !function.isExternal())
      function.setPublic();
  return success();
}

/// The same program for the target to compare with, whose results are not
/// wanted for themselves.
static RunOptions getReferenceOptions(const RunOptions &options) {
  RunOptions reference = options;
  reference.pipeline.target = options.compare;
  reference.pipeline.stats = false;
  reference.quiet = true;
  reference.time = false;
  reference.stateOut.clear();
  return reference;
}

/// Compiles the entry, which is all that is left of the module.
static llvm::Expected<std::optional<Executable>>
compileEntry(ModuleOp module, const Signature &signature,
             const PipelineOptions &pipeline) {
  auto start = std::chrono::steady_clock::now();
  if (failed(compileProgram(module, pipeline)))
    return std::nullopt;
  auto executable =
      Executable::compile(module, signature, pipeline.target != "cpu");
  if (!executable)
    return executable.takeError();
  std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  executable->seconds = elapsed.count();
  return std::move(*executable);
}

static llvm::Expected<bool> runSource(ModuleOp module,
                                      const RunOptions &options) {
  FailureOr<func::FuncOp> entry = findEntry(module, options.entry);
  if (failed(entry))
    return false;
  FailureOr<Signature> signature = getSignature(*entry);
  if (failed(signature))
    return false;
  // Before the work of compiling: most mistakes are in the inputs.
  auto arguments =
      readTensors(signature->arguments, options.inputs, options.steps);
  if (!arguments)
    return arguments.takeError();
  if (failed(isolate(module, *entry)))
    return false;
  OwningOpRef<ModuleOp> reference;
  if (!options.compare.empty())
    reference = module.clone();
  auto run =
      [&](ModuleOp module,
          const RunOptions &options) -> llvm::Expected<std::optional<Outputs>> {
    auto executable = compileEntry(module, *signature, options.pipeline);
    if (!executable)
      return executable.takeError();
    if (!*executable)
      return std::nullopt;
    return execute(**executable, *arguments, options);
  };
  auto outputs = run(module, options);
  if (!outputs || !*outputs || !reference)
    return outputs ? llvm::Expected<bool>(outputs->has_value())
                   : outputs.takeError();
  auto expected = run(*reference, getReferenceOptions(options));
  if (!expected || !*expected)
    return expected ? llvm::Expected<bool>(false) : expected.takeError();
  if (llvm::Error error =
          compareResults((*outputs)->getTensors(), (*expected)->getTensors(),
                         options.tolerance, llvm::outs()))
    return error;
  return true;
}

/// A shared object, by its name or by what is in it.
static bool isCompiled(const std::string &file) {
  llvm::file_magic magic;
  return StringRef(file).ends_with(".so") ||
         (!llvm::identify_magic(file, magic) && magic.is_object());
}

static llvm::Expected<bool> runCompiled(const RunOptions &options) {
  if (!options.compiling.empty())
    return llvm::createStringError("expected a program in MLIR with '" +
                                   options.compiling + "', but '" +
                                   options.file + "' is compiled already");
  auto start = std::chrono::steady_clock::now();
  MLIRContext context;
  auto executable = Executable::load(options.file, options.entry, context);
  if (!executable)
    return executable.takeError();
  std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  executable->seconds = elapsed.count();
  auto arguments = readTensors(executable->signature.arguments, options.inputs,
                               options.steps);
  if (!arguments)
    return arguments.takeError();
  auto outputs = execute(*executable, *arguments, options);
  if (!outputs)
    return outputs.takeError();
  return true;
}

llvm::Expected<bool> mlir::fp8::runProgram(const RunOptions &options) {
  if (isCompiled(options.file))
    return runCompiled(options);
  auto program = SourceProgram::read(options);
  if (!program)
    return program.takeError();
  if (!*program)
    return false;
  ModuleOp module = (*program)->getModule();
  if (options.compileTo.empty())
    return runSource(module, options);
  PipelineOptions pipeline = options.pipeline;
  pipeline.to = options.compileTo;
  if (failed(compileProgram(module, pipeline)))
    return false;
  module->print(llvm::outs());
  return true;
}
