//===- Run.cpp - What fp8-run does ----------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "Report.h"

#include "fp8/Compiler/Comparison.h"
#include "fp8/Compiler/Monitor.h"
#include "fp8/Compiler/State.h"
#include "fp8/Compiler/Steps.h"
#include "fp8/Support/OutputFile.h"
#include "fp8/Support/ReportedError.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/BinaryFormat/Magic.h"

#include <chrono>

using namespace mlir;
using namespace mlir::fp8;
using Clock = std::chrono::steady_clock;

namespace {
/// One function of a program, and how long the program took to get.
struct Executable {
  const fp8rt_program_function &function;
  const Signature &signature;
  /// "compile" or "load".
  StringRef making;
  std::chrono::duration<double> elapsed;
};
} // namespace

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static llvm::Expected<std::vector<HostTensor>>
readArguments(const Signature &signature, const RunOptions &options) {
  ArrayRef<ValueInfo> infos = signature.arguments;
  if (!options.inputs.empty())
    return readTensors(infos, options.inputs, options.steps.count,
                       options.ignoreExtraInputs);
  if (infos.empty())
    return std::vector<HostTensor>();
  std::string list;
  llvm::raw_string_ostream os(list);
  llvm::interleaveComma(infos, os, [&](const ValueInfo &info) {
    os << info.name << ": " << describe(info.dtype, info.shape);
  });
  return llvm::createStringError("expected --inputs=FILE.safetensors with " +
                                 list);
}

/// The state to begin with. What its file lacks or has more is a warning.
static llvm::Expected<State> startState(const Program &program,
                                        const fp8rt_program_function &function,
                                        const RunOptions &options) {
  auto state = State::create(program, function);
  if (!state)
    return state.takeError();
  StringRef option = !options.stateIn.empty()    ? "--state-in"
                     : !options.stateOut.empty() ? "--state-out"
                     : options.freeze            ? "--freeze"
                                                 : "";
  if (!state->getHandle() && !option.empty())
    return llvm::createStringError(
        "expected a program with scaling state for '" + option +
        "', but no tensor is quantized under a recipe with state, such as "
        "delayed");
  if (!options.stateIn.empty()) {
    auto differences = state->load(options.stateIn, options.stateStrict);
    if (!differences)
      return differences.takeError();
    for (const std::string &line : *differences)
      llvm::errs() << "fp8-run: warning: " << options.stateIn << ": " << line
                   << '\n';
  }
  if (options.freeze)
    if (llvm::Error error = state->freeze())
      return error;
  return state;
}

/// To a file, or as a summary.
static llvm::Error writeOutputs(const Outputs &outputs,
                                const RunOptions &options) {
  if (options.quiet)
    return llvm::Error::success();
  if (!options.outputs.empty())
    return writeTensors(outputs.getTensors(), options.outputs);
  for (const HostTensor &output : outputs.getTensors())
    printSummary(output, llvm::outs());
  return llvm::Error::success();
}

static llvm::Error writeStatistics(const Program &program, const State &state) {
  printStats(program.getCompiled()->interface.statsSlots, llvm::outs());
  if (!state.getHandle())
    return llvm::Error::success();
  return printState(state.getHandle(), llvm::outs());
}

/// The table, and the trace if it is wanted. Runs that are not steps are
/// repeated, without the first, which loads the kernels.
static llvm::Error profile(Program &program, Invocation &invocation,
                           Device &device, const RunOptions &options) {
  constexpr int numRuns = 10;
  int32_t index = device.getIndex();
  if (!options.steps.count) {
    if (llvm::Error error = program.startProfile(index, device.getStream()))
      return error;
    for (int i = 0; i < numRuns; ++i) {
      Outputs discarded(std::nullopt);
      if (auto error = invocation.run(/*step=*/0, discarded).takeError())
        return error;
    }
  }
  auto entries = program.stopProfile(index, device.getStream());
  if (!entries)
    return entries.takeError();
  auto copyRate = measureCopyRate(device);
  if (!copyRate)
    return copyRate.takeError();
  printProfile(*entries, *copyRate, llvm::outs());
  return options.trace.empty()
             ? llvm::Error::success()
             : writeOutputFile(options.trace, getTrace(*entries));
}

static llvm::Expected<Outputs> execute(Program &program,
                                       const Executable &executable,
                                       ArrayRef<HostTensor> arguments,
                                       const RunOptions &options) {
  auto state = startState(program, executable.function, options);
  if (!state)
    return state.takeError();
  std::unique_ptr<Device> device;
  if (program.isOnGPU()) {
    auto created = Device::create();
    if (!created)
      return created.takeError();
    device = std::move(*created);
  }

  if (options.profile && !device)
    return llvm::createStringError(
        "expected a program for a GPU with '--profile', which times kernels");
  if (options.profile && options.steps.count)
    if (llvm::Error error =
            program.startProfile(device->getIndex(), device->getStream()))
      return error;

  Invocation invocation(program, executable.function, executable.signature,
                        arguments, state->getHandle(), device.get());
  Outputs outputs(options.steps.count);
  auto runs =
      runSteps(invocation, options.steps, outputs, [&]() -> llvm::Error {
        if (!state->getHandle())
          return llvm::Error::success();
        return device
                   ? program.updateState(state->getHandle(), device->getIndex(),
                                         device->getStream())
                   : program.updateState(state->getHandle());
      });
  if (!runs)
    return runs.takeError();
  if (llvm::Error error = writeOutputs(outputs, options))
    return error;
  if (device && state->getHandle())
    if (llvm::Error error = state->download(device->getStream()))
      return error;
  // Last of what is written: the state before is needed until all else is.
  if (!options.stateOut.empty())
    if (llvm::Error error = state->save(options.stateOut))
      return error;
  if (options.pipeline.stats)
    if (llvm::Error error = writeStatistics(program, *state))
      return error;
  if (options.profile)
    if (llvm::Error error = profile(program, invocation, *device, options))
      return error;
  if (!options.time)
    return outputs;
  // Steps are measured as they were; a single run says little.
  if (!options.steps.count)
    runs = measure(invocation);
  if (!runs)
    return runs.takeError();
  printTimes(executable.making, executable.elapsed.count(), std::move(*runs),
             llvm::outs());
  return outputs;
}

//===----------------------------------------------------------------------===//
// Programs in MLIR
//===----------------------------------------------------------------------===//

/// Only one GPU's way to accumulate can be that of the reference.
static llvm::Error checkComparison(const RunOptions &options) {
  const CompileOptions &pipeline = options.pipeline;
  bool isOfGPU = pipeline.accumulate == "tensor-core" || pipeline.invariant;
  if (options.compare.empty() || !isOfGPU || !pipeline.accumulationOf.empty() ||
      !StringRef(pipeline.target).contains(','))
    return llvm::Error::success();
  return llvm::createStringError(
      "expected --accumulation-of=TARGET, or one target, with --compare");
}

/// The same program for the target to compare with, whose results are not
/// wanted for themselves.
static RunOptions getReferenceOptions(const RunOptions &options) {
  RunOptions reference = options;
  reference.pipeline.target = options.compare;
  // Those of the GPU that is compared.
  if (reference.pipeline.accumulationOf.empty() &&
      options.pipeline.target != "cpu" &&
      (reference.pipeline.accumulate == "tensor-core" ||
       reference.pipeline.invariant))
    reference.pipeline.accumulationOf = options.pipeline.target;
  reference.pipeline.stats = false;
  reference.pipeline.fusionReport.clear();
  reference.quiet = true;
  reference.time = false;
  reference.profile = false;
  reference.stateOut.clear();
  return reference;
}

static llvm::Expected<std::unique_ptr<Program>>
makeProgram(ModuleOp module, const Signature &signature,
            const RunOptions &options) {
  Monitor monitor("fp8-run", options.timing);
  CompileOptions pipeline = options.pipeline;
  pipeline.monitor = &monitor;
  auto compiled = compileProgram(
      module, pipeline, module.lookupSymbol<func::FuncOp>(signature.entry));
  if (!compiled)
    return compiled.takeError();
  monitor.beginStep("load");
  return Program::create(std::move(*compiled));
}

/// Compiles the entry, which is all that is left of the module, and runs it.
static llvm::Expected<Outputs> runModule(ModuleOp module,
                                         const Signature &signature,
                                         ArrayRef<HostTensor> arguments,
                                         const RunOptions &options) {
  Clock::time_point start = Clock::now();
  auto program = makeProgram(module, signature, options);
  if (!program)
    return program.takeError();
  auto function = (*program)->getFunction(signature.entry);
  if (!function)
    return function.takeError();
  return execute(**program,
                 {**function, signature, "compile", Clock::now() - start},
                 arguments, options);
}

static llvm::Error compare(const Outputs &outputs, const Outputs &reference,
                           double tolerance) {
  auto differences =
      compareResults(outputs.getTensors(), reference.getTensors());
  if (!differences)
    return differences.takeError();
  std::string beyond;
  for (const Difference &difference : *differences) {
    printDifference(difference, llvm::outs());
    if (!(difference.getShare() <= tolerance))
      beyond += (beyond.empty() ? "'" : ", '") + difference.name + "'";
  }
  if (beyond.empty())
    return llvm::Error::success();
  return llvm::createStringError(
      Twine("expected results within ") + std::to_string(tolerance) +
      " of those of the CPU, but not so for " + beyond);
}

static llvm::Error runSource(ModuleOp module, const RunOptions &options) {
  if (llvm::Error error = checkComparison(options))
    return error;
  FailureOr<func::FuncOp> entry = findEntry(module, options.entry);
  if (failed(entry))
    return makeReportedError();
  FailureOr<Signature> signature = getSignature(*entry);
  if (failed(signature))
    return makeReportedError();
  // Before the work of compiling: most mistakes are in the inputs.
  auto arguments = readArguments(*signature, options);
  if (!arguments)
    return arguments.takeError();
  if (failed(isolate(module, *entry)))
    return makeReportedError();
  OwningOpRef<ModuleOp> reference;
  if (!options.compare.empty())
    reference = module.clone();
  auto outputs = runModule(module, *signature, *arguments, options);
  if (!outputs)
    return outputs.takeError();
  if (!reference)
    return llvm::Error::success();
  auto expected = runModule(*reference, *signature, *arguments,
                            getReferenceOptions(options));
  if (!expected)
    return expected.takeError();
  return compare(*outputs, *expected, options.tolerance);
}

//===----------------------------------------------------------------------===//
// Compiled programs
//===----------------------------------------------------------------------===//

/// A shared object, by its name or by what is in it.
static bool isCompiled(const std::string &file) {
  llvm::file_magic magic;
  return StringRef(file).ends_with(".so") ||
         (!llvm::identify_magic(file, magic) && magic.is_object());
}

static llvm::Expected<Signature> selectEntry(std::vector<Signature> functions,
                                             StringRef entry) {
  std::string names;
  for (Signature &function : functions) {
    if (function.entry == entry || (entry.empty() && functions.size() == 1))
      return std::move(function);
    names += (names.empty() ? "'" : ", '") + function.entry + "'";
  }
  return llvm::createStringError((entry.empty()
                                      ? Twine("expected --entry=NAME")
                                      : "expected a function '" + entry + "'") +
                                 ", but the program has " + names);
}

static llvm::Error runCompiled(const RunOptions &options) {
  if (!options.compiling.empty())
    return llvm::createStringError("expected a program in MLIR with '" +
                                   options.compiling + "', but '" +
                                   options.file + "' is compiled already");
  Clock::time_point start = Clock::now();
  auto program = Program::load(options.file);
  if (!program)
    return program.takeError();
  MLIRContext context;
  auto functions = parseSignatures((*program)->getInfo().manifest, context);
  if (!functions)
    return functions.takeError();
  auto signature = selectEntry(std::move(*functions), options.entry);
  if (!signature)
    return signature.takeError();
  auto function = (*program)->getFunction(signature->entry);
  if (!function)
    return function.takeError();
  Clock::duration elapsed = Clock::now() - start;
  auto arguments = readArguments(*signature, options);
  if (!arguments)
    return arguments.takeError();
  return execute(**program, {**function, *signature, "load", elapsed},
                 *arguments, options)
      .takeError();
}

llvm::Error fp8::runProgram(const RunOptions &options) {
  if (isCompiled(options.file))
    return runCompiled(options);
  auto program = SourceProgram::read(options);
  if (!program)
    return program.takeError();
  ModuleOp module = (*program)->getModule();
  if (options.compileTo.empty())
    return runSource(module, options);
  PipelineOptions pipeline = options.pipeline;
  pipeline.to = options.compileTo;
  Monitor monitor("fp8-run", options.timing);
  if (failed(runPipeline(module, pipeline, &monitor)))
    return makeReportedError();
  module->print(llvm::outs());
  return llvm::Error::success();
}
