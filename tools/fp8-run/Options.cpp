//===- Options.cpp - Command line of fp8-run ------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "CommandLine.h"
#include "OptionTable.inc"

#include "llvm/Support/raw_ostream.h"

using namespace llvm::opt;
using namespace mlir::fp8;

/// Whether it is an option that has a say in compiling.
static llvm::Expected<bool> parseValue(const Arg &arg, RunOptions &options) {
  llvm::StringRef value = getValue(arg);
  switch (arg.getOption().getID()) {
  case OPT_entry:
    options.entry = value;
    break;
  case OPT_compare:
    if (value != "cpu")
      return makeValueError(arg, "cpu");
    options.compare = value;
    return true;
  case OPT_tolerance:
    if (llvm::Error error = parseNumber(arg, options.tolerance))
      return error;
    break;
  case OPT_inputs:
    options.inputs = value;
    break;
  case OPT_ignore_extra_inputs:
    options.ignoreExtraInputs = true;
    break;
  case OPT_outputs:
    options.outputs = value;
    break;
  case OPT_compile_to:
    options.compileTo = value;
    return true;
  case OPT_device:
    // Read once, when the driver is loaded, which is later.
    if (value == "emulator")
      setenv("FP8_CUDA_DRIVER", "emulator", /*overwrite=*/1);
    else if (value != "gpu")
      return makeValueError(arg, "gpu or emulator");
    break;
  case OPT_check:
    // The model itself says what it does not know.
    setenv("FP8_EMULATOR_CHECK", value.str().c_str(), /*overwrite=*/1);
    setenv("FP8_CUDA_DRIVER", "emulator", /*overwrite=*/0);
    break;
  case OPT_steps:
    if (llvm::Error error = parseCount(arg, options.steps.count.emplace()))
      return error;
    break;
  case OPT_microbatches:
    if (llvm::Error error = parseCount(arg, options.steps.microbatches))
      return error;
    break;
  case OPT_state_in:
    options.stateIn = value;
    break;
  case OPT_state_out:
    options.stateOut = value;
    break;
  case OPT_state_strict:
    options.stateStrict = true;
    break;
  case OPT_freeze:
    options.freeze = true;
    break;
  case OPT_time:
    options.time = true;
    break;
  case OPT_profile_EQ:
    options.trace = value;
    [[fallthrough]];
  case OPT_profile:
    options.profile = true;
    break;
  case OPT_stats:
    options.pipeline.stats = true;
    return true;
  default:
    return parseCompilerOption(arg, options);
  }
  return false;
}

llvm::Expected<RunOptions> mlir::fp8::parseOptions(int argc, char **argv) {
  ToolOptTable table;
  auto parsed = parseArguments(table, argc, argv, OPT_help);
  if (!parsed)
    return parsed.takeError();
  const InputArgList &args = *parsed;
  RunOptions options;
  if (args.hasArg(OPT_help)) {
    table.printHelp(
        llvm::outs(), "fp8-run FILE.mlir|FILE.so [options]",
        "Runs an MLIR program with FP8 matmuls, or what fp8-compile "
        "made of one");
    options.help = true;
    return options;
  }
  auto file = getInputFile(args);
  if (!file)
    return file.takeError();
  options.file = *file;
  for (const Arg *arg : args) {
    auto isCompiling = parseValue(*arg, options);
    if (!isCompiling)
      return isCompiling.takeError();
    if (*isCompiling && options.compiling.empty())
      options.compiling = arg->getAsString(args);
  }
  if (options.stateStrict && options.stateIn.empty())
    return llvm::createStringError(
        "expected --state-in=FILE with --state-strict");
  int64_t steps = options.steps.count.value_or(1);
  if (steps % options.steps.microbatches != 0)
    return llvm::createStringError(
        "expected --steps to be a multiple of --microbatches=" +
        llvm::Twine(options.steps.microbatches) + ", but got " +
        llvm::Twine(steps));
  auto settled = settleTarget(options.pipeline);
  if (!settled)
    return settled.takeError();
  options.pipeline = std::move(*settled);
  return options;
}
