//===- Tune.cpp - Measure a program's kernels, then compile it ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tune.h"

#include "fp8/Compiler/Monitor.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Runtime/Device.h"
#include "fp8/Support/CacheDirectory.h"
#include "fp8/Support/OutputFile.h"
#include "fp8/Support/ReportedError.h"
#include "fp8/Support/Runtime.h"
#include "fp8/Tuning/Tuner.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fp8;

/// How many configs of a kernel are measured. On random shapes the best of what
/// the model puts first is within a few per cent of the best of all.
static constexpr size_t kMaxConfigs = 8;

/// That of this machine's GPU: times of another one say little.
static llvm::Expected<std::string> getDefaultTable(StringRef chip) {
  std::optional<std::string> directory = getCacheDirectory("tuned");
  if (!directory)
    return llvm::createStringError(
        "expected a home directory to keep what is measured in, or "
        "'tune' to name a file");
  fp8rt_device_info info{};
  if (auto error = makeError(fp8rt_device_get_info(/*device=*/0, &info)))
    return error;
  std::string name = chip.str() + "-";
  for (char c : StringRef(info.name))
    name += llvm::isAlnum(c) ? llvm::toLower(c) : '-';
  if (std::error_code error = llvm::sys::fs::create_directories(*directory))
    return llvm::createStringError(error, "cannot make '" + *directory + "'");
  SmallString<128> path(*directory);
  llvm::sys::path::append(path, name + ".json");
  return path.str().str();
}

/// `module` in a context of its own, where nobody hears what passes say: they
/// say it again when the program is compiled.
static OwningOpRef<ModuleOp> copyTo(MLIRContext &context, ModuleOp module) {
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  if (failed(writeBytecodeToFile(module, os)))
    return nullptr;
  context.appendDialectRegistry(module->getContext()->getDialectRegistry());
  return parseSourceString<ModuleOp>(bytes, &context);
}

/// Up to where operations have kernels. False if that fails, which compiling
/// the program will, too.
static bool runPasses(ModuleOp module, const CompileOptions &options) {
  PipelineOptions pipeline = options;
  pipeline.to = stringifyPhase(Phase::Fusion).str();
  pipeline.fusionReport.clear();
  PassManager pm(module->getContext());
  SetTargetPassOptions setTarget;
  setTarget.chip = options.target;
  setTarget.machine = options.machine;
  pm.addPass(createSetTargetPass(setTarget));
  return succeeded(runPipeline(module, pipeline)) && succeeded(pm.run(module));
}

static llvm::Error load(TuningTable &table, const std::string &path,
                        MLIRContext *context, Location loc) {
  if (!llvm::sys::fs::exists(path))
    return llvm::Error::success();
  if (failed(table.load(path, context, loc)))
    return makeReportedError();
  return llvm::Error::success();
}

bool fp8::isTuned(const CompileOptions &options) {
  return !options.tune.empty() && options.tune != "off" &&
         options.tune != "false";
}

llvm::Expected<CompileOptions> fp8::tuneKernels(ModuleOp module,
                                                CompileOptions options) {
  if (!isTuned(options) || !lookupArchitecture(options.target))
    return options;
  if (!options.kernelTable.empty())
    return llvm::createStringError(
        "expected 'kernel-table' or 'tune', but got both");
  std::string path = options.tune;
  if (path == "on" || path == "true") {
    auto found = getDefaultTable(options.target);
    if (!found)
      return found.takeError();
    path = std::move(*found);
  }
  if (options.monitor)
    options.monitor->beginStep("measure kernels");
  Location loc = module.getLoc();
  MLIRContext context;
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  OwningOpRef<ModuleOp> copy = copyTo(context, module);
  if (!copy)
    return llvm::createStringError(
        "cannot copy the program to measure its kernels");
  if (!runPasses(*copy, options))
    return options;
  TuningTable table(options.target);
  if (auto error = load(table, path, &context, loc))
    return error;
  TunerOptions tuner;
  tuner.most = kMaxConfigs;
  tuner.onlyMissing = true;
  tuner.kernelCache = options.kernelCache;
  bool isNew = false;
  auto report = [&](const TunedChoice &choice) {
    isNew = true;
    std::string config;
    llvm::raw_string_ostream(config) << choice.fastest.config;
    std::string text = llvm::formatv("{0}: {1}, {2:f2} us", choice.kernel,
                                     config, choice.fastest.microseconds);
    if (choice.selectedMicroseconds)
      text += llvm::formatv(", {0:f2} us without a table",
                            *choice.selectedMicroseconds);
    emitRemark(loc) << text << ", " << choice.configs << " configs measured";
  };
  if (auto error = tuneKernels(*copy, tuner, table, report))
    return error;
  options.kernelTable = path;
  if (!isNew)
    return options;
  std::string text;
  llvm::raw_string_ostream os(text);
  table.write(os);
  if (auto error = writeOutputFile(path, text))
    return error;
  return options;
}
