//===- Program.cpp - Compile, run, report -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "Comparison.h"
#include "Execution.h"
#include "fp8/Target/Program/Signature.h"

#include "fp8/Target/CPU/Object.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileUtilities.h"

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
  if (failed(compileProgram(module, options.pipeline)))
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

llvm::Expected<bool> mlir::fp8::runProgram(const RunOptions &options) {
  auto program = SourceProgram::read(options);
  if (!program)
    return program.takeError();
  if (!*program)
    return false;
  ModuleOp module = (*program)->getModule();

  if (options.compileTo == "binary")
    return writeObject(module, options);
  if (!options.compileTo.empty()) {
    PipelineOptions pipeline = options.pipeline;
    pipeline.to = options.compileTo;
    if (failed(compileProgram(module, pipeline)))
      return false;
    module->print(llvm::outs());
    return true;
  }

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
  auto start = std::chrono::steady_clock::now();
  if (failed(isolate(module, *entry)))
    return false;
  OwningOpRef<ModuleOp> reference;
  if (!options.compare.empty())
    reference = module.clone();
  if (failed(compileProgram(module, options.pipeline)))
    return false;
  auto outputs = execute(module, *signature, *arguments, start, options);
  if (!outputs)
    return outputs.takeError();
  if (!reference)
    return true;
  RunOptions referenceOptions = getReferenceOptions(options);
  if (failed(compileProgram(*reference, referenceOptions.pipeline)))
    return false;
  auto expected = execute(*reference, *signature, *arguments,
                          std::chrono::steady_clock::now(), referenceOptions);
  if (!expected)
    return expected.takeError();
  if (llvm::Error error =
          compareResults(outputs->getTensors(), expected->getTensors(),
                         options.tolerance, llvm::outs()))
    return error;
  return true;
}
