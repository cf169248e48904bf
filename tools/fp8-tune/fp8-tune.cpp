//===- fp8-tune.cpp - Measure kernels and remember the fastest ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "FatalErrors.h"
#include "Options.h"

#include "fp8/Compiler/Monitor.h"
#include "fp8/Kernels/Machine.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/TuningTable.h"
#include "fp8/Support/InputFile.h"
#include "fp8/Support/OutputFile.h"
#include "fp8/Tuning/Costs.h"
#include "fp8/Tuning/Tuner.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

#include <cstdio>

using namespace mlir;
using namespace mlir::fp8;

static llvm::Expected<std::unique_ptr<SourceProgram>>
readProgram(const TuneOptions &options) {
  if (options.shapes.extents.empty())
    return SourceProgram::read(options);
  return SourceProgram::read(
      options, llvm::MemoryBuffer::getMemBufferCopy(getProgram(options.shapes),
                                                    "--shape"));
}

/// The table to add to.
static FailureOr<TuningTable> startTable(const TuneOptions &options,
                                         MLIRContext &context) {
  Location loc = UnknownLoc::get(&context);
  TuningTable table(options.pipeline.target);
  if (!options.pipeline.kernelTable.empty() &&
      failed(table.load(options.pipeline.kernelTable, &context, loc)))
    return failure();
  return table;
}

static void report(const TunedChoice &choice) {
  llvm::errs() << choice.kernel << ": " << choice.fastest.config
               << llvm::formatv(", {0:f2} us", choice.fastest.microseconds);
  if (choice.selectedMicroseconds)
    llvm::errs() << llvm::formatv(", {0:f2} us without a table",
                                  *choice.selectedMicroseconds);
  llvm::errs() << llvm::formatv(", {0} configs\n", choice.configs);
}

/// With its end; false behind the last one.
static bool readLine(std::string &line) {
  line.clear();
  for (int c = 0; (c = std::getc(stdin)) != EOF;) {
    line += static_cast<char>(c);
    if (c == '\n')
      return true;
  }
  return !line.empty();
}

/// The file of a machine on the standard input; empty behind the last one.
static std::string readMachine() {
  std::string text;
  for (std::string line; readLine(line) && line != "// -----\n";)
    text += line;
  return text;
}

/// Answers each machine with what the configs of a file cost on it.
static llvm::Expected<bool> answerMachines(ModuleOp module, StringRef path,
                                           const TuneOptions &options) {
  auto configs = readInputFile(path);
  if (!configs)
    return llvm::createStringError("configs '" + path +
                                   "': " + llvm::toString(configs.takeError()));
  FailureOr<CostTable> table = CostTable::get(module, **configs, path);
  if (failed(table))
    return false;
  std::error_code error;
  llvm::raw_fd_ostream os(options.output, error);
  if (error)
    return llvm::createFileError(options.output, error);
  constexpr StringRef name = "<stdin>";
  MLIRContext *context = module.getContext();
  for (std::string text = readMachine(); !text.empty(); text = readMachine()) {
    FailureOr<GPUTargetAttr> target = parseMachine(
        llvm::MemoryBuffer::getMemBuffer(text, name), name,
        options.pipeline.target, context,
        [&] { return emitError(FileLineColLoc::get(context, name, 1, 1)); });
    if (failed(target))
      return false;
    for (double clocks : table->getClocks(*target))
      llvm::support::endian::write(os, clocks, llvm::endianness::little);
    os.flush();
  }
  return true;
}

static llvm::Expected<bool> tuneProgram(const TuneOptions &options) {
  auto source = readProgram(options);
  if (!source)
    return source.takeError();
  FailureOr<TuningTable> table = startTable(options, (*source)->getContext());
  if (failed(table))
    return false;
  PipelineOptions pipeline = options.pipeline;
  pipeline.to = stringifyPhase(Phase::Fusion).str();
  ModuleOp module = (*source)->getModule();
  PassManager pm(module.getContext());
  SetTargetPassOptions setTarget;
  setTarget.chip = options.pipeline.target;
  setTarget.machine = options.pipeline.machine;
  pm.addPass(createSetTargetPass(setTarget));
  {
    Monitor monitor("fp8-tune", options.timing);
    if (failed(runPipeline(module, pipeline, &monitor)) ||
        failed(pm.run(module)))
      return false;
  }
  if (options.configs)
    return answerMachines(module, *options.configs, options);
  std::string text;
  llvm::raw_string_ostream os(text);
  if (options.costs) {
    printCosts(module, os);
    if (auto error = writeOutputFile(options.output, text))
      return error;
    return true;
  }
  TunerOptions tuner;
  tuner.rounds = options.rounds;
  tuner.exhaustive = options.exhaustive;
  tuner.kernelCache = options.pipeline.kernelCache;
  if (auto error = tuneKernels(module, tuner, *table, report))
    return error;
  table->write(os);
  if (auto error = writeOutputFile(options.output, text))
    return error;
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  handleFatalErrors("fp8-tune");
  auto options = parseOptions(argc, argv);
  if (options && options->help)
    return 0;
  return finish("fp8-tune",
                options ? tuneProgram(*options) : options.takeError());
}
