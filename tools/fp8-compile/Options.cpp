//===- Options.cpp - Command line of fp8-compile --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "CommandLine.h"
#include "OptionTable.inc"

#include "fp8/Kernels/Architecture.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm::opt;
using namespace mlir::fp8;
using llvm::StringRef;

static llvm::Error parseValue(const Arg &arg, EmitOptions &options) {
  StringRef value = getValue(arg);
  switch (arg.getOption().getID()) {
  case OPT_o:
    options.output = value;
    break;
  case OPT_emit: {
    auto emit = llvm::StringSwitch<std::optional<Emit>>(value)
                    .Case("so", Emit::SharedObject)
                    .Case("obj", Emit::Object)
                    .Case("llvm", Emit::LLVM)
                    .Case("ptx", Emit::PTX)
                    .Case("cubin", Emit::Cubin)
                    .Case("mlir", Emit::MLIR)
                    .Default(std::nullopt);
    if (!emit)
      return makeValueError(arg, "so, obj, llvm, ptx, cubin or mlir");
    options.emit = *emit;
    break;
  }
  case OPT_compile_to:
    options.pipeline.to = value;
    break;
  case OPT_header:
    options.header = value;
    break;
  default:
    return parseCompilerOption(arg, options).takeError();
  }
  return llvm::Error::success();
}

/// Options that would have no effect are mistakes.
static llvm::Error checkUse(const InputArgList &args,
                            const EmitOptions &options) {
  bool isProgram =
      options.emit == Emit::SharedObject || options.emit == Emit::Object;
  bool isKernels = options.emit == Emit::PTX || options.emit == Emit::Cubin;
  bool isShared = options.emit == Emit::SharedObject;
  bool isHost = isProgram || options.emit == Emit::LLVM;
  const struct {
    ID id;
    bool isUsed;
    StringRef emit;
  } uses[] = {
      {OPT_compile_to, options.emit == Emit::MLIR, "mlir"},
      {OPT_name, isHost, "so, obj or llvm"},
      {OPT_header, isProgram, "so or obj"},
      {OPT_kernel_format, !isKernels, "so, obj, llvm or mlir"},
      {OPT_kernel_cache, options.emit != Emit::PTX,
       "so, obj, llvm, cubin or mlir"},
      {OPT_cpu, isHost, "so, obj or llvm"},
      {OPT_linker, isShared, "so"},
      {OPT_rpath, isShared, "so"},
  };
  for (auto [id, isUsed, emit] : uses)
    if (const Arg *arg = args.getLastArg(id); arg && !isUsed)
      return llvm::createStringError("expected --emit=" + emit + " with '" +
                                     arg->getAsString(args) + "'");
  if (isKernels && options.pipeline.target == "cpu") {
    registerAllArchitectures();
    return llvm::createStringError(
        "expected --target=" + llvm::join(getArchitectureChips(), " or ") +
        " with --emit=ptx or cubin");
  }
  return llvm::Error::success();
}

/// Whether a file that is written would replace one that is read.
static bool isSameFile(StringRef input, StringRef output) {
  return llvm::sys::fs::is_regular_file(output) &&
         llvm::sys::fs::equivalent(input, output);
}

static llvm::Error deriveOutput(const InputArgList &args,
                                EmitOptions &options) {
  bool isText = options.emit == Emit::LLVM || options.emit == Emit::PTX ||
                options.emit == Emit::MLIR;
  if (options.output.empty() && isText)
    options.output = "-";
  if (options.output.empty())
    return llvm::createStringError("expected -o FILE; see --help");
  if (options.emit == Emit::SharedObject && options.output == "-")
    return llvm::createStringError(
        "expected -o FILE with --emit=so, but got the standard output");
  StringRef stem = llvm::sys::path::stem(
      options.output == "-" ? options.file : options.output);
  // As linkers have it: -lNAME is libNAME.so.
  if (options.emit == Emit::SharedObject)
    stem.consume_front("lib");
  if (!args.hasArg(OPT_name))
    options.pipeline.name = stem.str();
  llvm::SmallString<256> header(llvm::sys::path::parent_path(options.output));
  llvm::sys::path::append(header, stem + ".h");
  bool isProgram =
      options.emit == Emit::SharedObject || options.emit == Emit::Object;
  if (options.header.empty() && isProgram && options.output != "-")
    options.header = header.str().str();
  if (options.header == options.output && options.output != "-")
    return llvm::createStringError("expected another name than '" +
                                   options.output +
                                   "' for the header, with --header=FILE");
  for (const std::string &output : {options.output, options.header})
    if (output != "-" && isSameFile(options.file, output))
      return llvm::createStringError("expected another file than the input to "
                                     "write to, but got '" +
                                     output + "'");
  return llvm::Error::success();
}

llvm::Expected<EmitOptions> mlir::fp8::parseOptions(int argc, char **argv) {
  ToolOptTable table;
  auto parsed = parseArguments(table, argc, argv, OPT_help);
  if (!parsed)
    return parsed.takeError();
  const InputArgList &args = *parsed;
  EmitOptions options;
  if (args.hasArg(OPT_help)) {
    table.printHelp(llvm::outs(), "fp8-compile FILE.mlir -o FILE [options]",
                    "Compiles an MLIR program with FP8 matmuls to a shared "
                    "object for C, or to what comes before");
    options.help = true;
    return options;
  }
  auto file = getInputFile(args);
  if (!file)
    return file.takeError();
  options.file = *file;
  for (const Arg *arg : args)
    if (llvm::Error error = parseValue(*arg, options))
      return error;
  if (llvm::Error error = checkUse(args, options))
    return error;
  if (llvm::Error error = deriveOutput(args, options))
    return error;
  return options;
}
