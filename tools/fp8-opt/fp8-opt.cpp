//===- fp8-opt.cpp - The optimizer driver ---------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FatalErrors.h"
#include "fp8/InitAll.h"
#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Report/Remarks.h"
#include "fp8/Support/Nesting.h"
#include "fp8/Support/OutputFile.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

#ifndef NDEBUG
/// What passes log (LDBG), as `-debug-only` says it, which LLVM's own code has
/// only if it was built with assertions too.
static void logPasses(const std::vector<std::string> &flags) {
  SmallVector<const char *> types;
  for (const std::string &flag : flags)
    types.push_back(flag.c_str());
  if (types.empty())
    return;
  llvm::DebugFlag = true;
  llvm::setCurrentDebugTypes(types.data(), types.size());
}
#endif

/// They are written when the context is destroyed.
static bool hasLostRemarks = false;

/// Has a pipeline without a report of fusion fail.
static void requireFusionReport(MlirOptMainConfig &config) {
  MlirOptMainConfig commandLine = config;
  config.setPassPipelineSetupFn([commandLine](PassManager &pm) {
    if (failed(commandLine.setupPassPipeline(pm)))
      return failure();
    if (llvm::none_of(pm.getPasses(), [](Pass &pass) {
          return pass.getArgument() == "fp8-report-fusion";
        })) {
      llvm::errs() << "error: expected --fp8-pipeline with "
                      "--fp8-fusion-report\n";
      return failure();
    }
    return success();
  });
}

/// Writes remarks to `remarks`, "json:FILE" or "text:FILE".
static void writeRemarks(MlirOptMainConfig &config,
                         const std::string &remarks) {
  // The context is made by MlirOptMain: its first pass manager is the first
  // place where it can be reached.
  MlirOptMainConfig commandLine = config;
  config.setPassPipelineSetupFn([commandLine, remarks](PassManager &pm) {
    std::string error;
    auto onWriteError = [](llvm::Error error) {
      hasLostRemarks = true;
      llvm::errs() << "error: " << llvm::toString(std::move(error)) << '\n';
    };
    if (failed(fp8::enableRemarks(pm.getContext(), remarks, onWriteError,
                                  error))) {
      llvm::errs() << "error: " << error << '\n';
      return failure();
    }
    return commandLine.setupPassPipeline(pm);
  });
}

/// Reads a file; null, and says why, if it cannot be read or is nested too
/// deeply to be parsed.
static std::unique_ptr<llvm::MemoryBuffer> readInput(StringRef path) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &error);
  if (!file) {
    llvm::errs() << "error: " << error << '\n';
    return nullptr;
  }
  if (llvm::Error tooDeep =
          fp8::checkNesting(file->getBuffer(), file->getBufferIdentifier())) {
    llvm::errs() << "error: " << llvm::toString(std::move(tooDeep)) << '\n';
    return nullptr;
  }
  return file;
}

int main(int argc, char **argv) {
  llvm::InitLLVM initLLVM(argc, argv);
  fp8::handleFatalErrors("fp8-opt");
  DialectRegistry registry;
  fp8::registerAllDialects(registry);
  // What options of the tool say of every pipeline.
  static fp8::PipelineOptions pipelineOptions;
  fp8::registerAllPasses(&pipelineOptions);
  static llvm::cl::opt<std::string> remarks(
      "fp8-remarks",
      llvm::cl::desc("Write what was decided about every contraction: "
                     "json:FILE or text:FILE"));
  static llvm::cl::opt<std::string, true> fusionReport(
      "fp8-fusion-report", llvm::cl::location(pipelineOptions.fusionReport),
      llvm::cl::desc("Write what each kernel of --fp8-pipeline reads and "
                     "writes, and why it is not fused further: a FILE, or -"));
#ifndef NDEBUG
  static llvm::cl::list<std::string> loggedPasses(
      "fp8-debug-only", llvm::cl::CommaSeparated,
      llvm::cl::desc("Log what these passes decide, e.g. fp8-apply-recipe"));
#endif

  auto [input, output] = registerAndParseCLIOptions(
      argc, argv, "fp8 optimizer driver\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
#ifndef NDEBUG
  logPasses(loggedPasses);
#endif
  if (!pipelineOptions.fusionReport.empty())
    requireFusionReport(config);
  if (!remarks.empty())
    writeRemarks(config, remarks);
  std::unique_ptr<llvm::MemoryBuffer> file = readInput(input);
  if (!file)
    return 1;
  // A file is written whole, the standard output as it comes.
  if (output == "-")
    return failed(
               MlirOptMain(llvm::outs(), std::move(file), registry, config)) ||
           hasLostRemarks;
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(MlirOptMain(os, std::move(file), registry, config)) ||
      hasLostRemarks)
    return 1;
  if (llvm::Error error = fp8::writeOutputFile(output, text)) {
    llvm::errs() << "fp8-opt: error: " << llvm::toString(std::move(error))
                 << '\n';
    return 1;
  }
  return 0;
}
